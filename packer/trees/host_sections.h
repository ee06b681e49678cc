/* SPDX-License-Identifier: MIT */
/* The loaded sections of a host binary, for the comparison of hosts. */
#ifndef PACKER_BINARY_HOST_SECTIONS_H
#define PACKER_BINARY_HOST_SECTIONS_H

#include "packer/archives/binary.h"
#include "core/base/elf_relr.h"
#include "core/format/sections.h"

struct host_sections {
	const struct binary *binary;
	/* In the order of the table: loaded sections and .comment, without the sections
	 * that depend on conversion or the list of GPUs. */
	struct kp_section *items;
	size_t count;
	uint64_t fatbin; /* number of .hip_fatbin in the file's table, or 0 */
	uint64_t fatbin_address, marker_address; /* 0: no such section */
	bool stack_executable;
	char *names; /* owned */
};

/* Borrows B.  INVALID_FORMAT: invalid ELF tables.  OUT_OF_MEMORY. */
kpack_error_t host_sections_read(const struct binary *b, struct host_sections *out,
				 struct kpackx_error *why);
void host_sections_fini(struct host_sections *s); /* accepts a zeroed one */

/* The section NAME among the items, or NULL. */
const struct kp_section *host_sections_find(const struct host_sections *s,
					    const char *name);

/* The section's bytes; empty if it has no bytes in the file. */
struct kp_source host_section_source(const struct host_sections *s,
				     const struct kp_section *section);

/*
 * Load all bytes of the section on the heap, and a NUL after them; NULL: an absent
 * section, which has no bytes.
 * INVALID_FORMAT: more than KP_SYMBOL_NAMES_MAX.  IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t host_section_load(const struct host_sections *s,
				const struct kp_section *section, uint8_t **out,
				struct kpackx_error *why);

#endif
