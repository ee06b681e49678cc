/* SPDX-License-Identifier: MIT */
/*
 * Section headers of an ELF64 anywhere in a source - a member of an archive, an image - where
 * libelf, which wants a file, cannot go.  Only reads; host binaries that are changed are
 * core/elf.h's.
 */
#ifndef KP_SECTIONS_H
#define KP_SECTIONS_H

#include <elf.h>
#include "../error.h"
#include "../file.h"

struct kp_section {
	const char *name; /* "" where it has none */
	uint32_t type, link, info;
	uint64_t flags, addr, offset, size, entsize;
};

struct kp_sections {
	Elf64_Ehdr header;        /* decoded */
	struct kp_section *items; /* by index; [0] is SHT_NULL */
	size_t count;
	char *names; /* owned */
	/* Where the ELF ends: behind its headers, its sections and its segments. */
	uint64_t end;
};

/*
 * Read the headers of the little-endian ELF64 that SRC begins with.
 * INVALID_FORMAT: what does not fit into SRC, names that do not end.  On failure OUT is empty.
 */
kpack_error_t kp_sections_read(const struct kp_source *src, struct kp_sections *out,
			       struct kpackx_error *why);
void kp_sections_fini(struct kp_sections *sections);

/* The first section of that name, or NULL. */
const struct kp_section *kp_sections_find(const struct kp_sections *sections,
					  const char *name);

#endif
