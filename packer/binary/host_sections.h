/* SPDX-License-Identifier: MIT */
/* The sections of a host binary that are loaded, as comparing hosts needs them. */
#ifndef PACKER_BINARY_HOST_SECTIONS_H
#define PACKER_BINARY_HOST_SECTIONS_H

#include <elf.h>
#include "binary.h"

struct host_section {
	const char *name; /* as long as the table */
	Elf64_Shdr h;
};

struct host_sections {
	const struct binary *binary;
	/* In order of the table: what is loaded, and .comment; without what conversion and the
	 * list of GPUs decide. */
	struct host_section *items;
	size_t count;
	uint64_t fatbin; /* number of .hip_fatbin in the file's table, or 0 */
	uint64_t fatbin_address, marker_address; /* 0: there is none */
	bool stack_executable;
	void *libelf; /* owns the names */
};

/* Borrows B.  INVALID_FORMAT: tables that lie.  OUT_OF_MEMORY. */
kpack_error_t host_sections_read(const struct binary *b, struct host_sections *out,
				 struct kpackx_error *why);
void host_sections_fini(struct host_sections *s); /* accepts a zeroed one */

/* The section NAME among the items, or NULL. */
const struct host_section *host_sections_find(const struct host_sections *s,
					      const char *name);

/* Where its bytes are; none for one without bytes in the file. */
struct kp_source host_section_source(const struct host_sections *s,
				     const struct host_section *section);

/*
 * All its bytes on the heap, and a NUL behind them; an absent one (NULL) has none.
 * INVALID_FORMAT: more than KP_SYMBOL_NAMES_MAX.  IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t host_section_load(const struct host_sections *s,
				const struct host_section *section, uint8_t **out,
				struct kpackx_error *why);

#endif
