/* SPDX-License-Identifier: MIT */
/*
 * Device code of ELF files whose section table core/format/sections.c does not read: of
 * other classes and byte orders, or without a table, or without the sections' names.
 */
#ifndef KP_CORE_FORMAT_LOOSE_CODE_H
#define KP_CORE_FORMAT_LOOSE_CODE_H

#include "format.h"
#include "sections.h"

/* Names of sections are cut off behind so many bytes. */
#define KP_LOOSE_NAME_MAX 63

/* True if HEAD begins an ELF of any class and byte order; sets its e_type and e_machine. */
bool kp_elf_any_probe(struct kp_span head, uint16_t *type, uint16_t *machine);

/*
 * Call FN for each section with bytes, until one fails: its name, type, flags, offset and
 * size.  What cannot be read of the table is left out.
 */
typedef kpack_error_t kp_loose_section(void *arg, const struct kp_section *section,
				       struct kpackx_error *why);
kpack_error_t kp_loose_sections(const struct kp_source *src, kp_loose_section *fn,
				void *arg, struct kpackx_error *why);

/* Whether a segment of the linked ELF in SRC has a wrapper of HIP or of CUDA. */
bool kp_loose_wrapper(const struct kp_source *src);
/* What the section table says. */
enum kp_loose_rest {
	KP_LOOSE_NOTHING, /* it names no section of device code, nor one of wrappers */
	KP_LOOSE_ELSEWHERE, /* it has a section of wrappers, whose code is in another file */
	KP_LOOSE_UNREAD,    /* it cannot be read: the file may be cut off */
};

/*
 * If the segments of the linked ELF in SRC have a wrapper of HIP or of CUDA, or are cut off,
 * append each container in them, damaged ones too, as an image of C, with the name
 * KP_NO_SECTION.
 * INVALID_FORMAT: there are wrappers, but no container, and REST does not explain it.
 */
kpack_error_t kp_loose_code_find(const struct kp_source *src, enum kp_loose_rest rest,
				 struct kp_container *c, struct kp_containers *list,
				 struct kpackx_error *why);

#endif
