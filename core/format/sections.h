/* SPDX-License-Identifier: MIT */
/*
 * Section headers of an ELF64 anywhere in a source - a member of an archive, an image - where
 * libelf, which wants a file, cannot go.  Only reads; host binaries that are changed are
 * core/elf.h's.
 */
#ifndef KP_CORE_FORMAT_SECTIONS_H
#define KP_CORE_FORMAT_SECTIONS_H

#include <elf.h>
#include "core/base/errors.h"
#include "core/base/file.h"

struct kp_section {
	const char *name; /* "" where it has none */
	uint32_t type, link, info;
	uint64_t flags, addr, offset, size, entsize;
};

struct kp_sections {
	Elf64_Ehdr header;        /* decoded */
	struct kp_section *items; /* by index; [0], where there are any, is SHT_NULL */
	size_t count;
	char *names; /* owned */
	/* Where the ELF ends: behind its headers, its sections and its segments. */
	uint64_t end;
};

/* Does a little-endian ELF64 begin with HEAD?  MACHINE (may be NULL) is its e_machine. */
bool kp_elf_probe(struct kp_span head, uint16_t *machine);

/*
 * Where the little-endian ELF64 that SRC begins with ends: behind its headers, its sections
 * and its segments, whatever stands in SRC behind it.  Allocates nothing.
 * INVALID_FORMAT: not such an ELF; what does not fit into SRC.
 */
kpack_error_t kp_elf_extent(const struct kp_source *src, uint64_t *end,
			    struct kpackx_error *why);

/*
 * Read the headers of the little-endian ELF64 that SRC begins with.  Every section that has
 * bytes (not NULL, not NOBITS, nor what is like it in cubins) lies in SRC; segments of files
 * with split-off debugging information need not.
 * INVALID_FORMAT: what does not fit into SRC, names that do not end.  On failure OUT is empty.
 */
kpack_error_t kp_sections_read(const struct kp_source *src, struct kp_sections *out,
			       struct kpackx_error *why);
void kp_sections_fini(struct kp_sections *sections);

/* The first section of that name, or NULL. */
const struct kp_section *kp_sections_find(const struct kp_sections *sections,
					  const char *name);

#endif
