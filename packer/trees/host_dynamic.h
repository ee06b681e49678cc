/* SPDX-License-Identifier: MIT */
/* Compare what host binaries ask of the dynamic loader. */
#ifndef PACKER_BINARY_HOST_DYNAMIC_H
#define PACKER_BINARY_HOST_DYNAMIC_H

#include "host_compare.h"
#include "host_sections.h"

/*
 * Compare the dynamic symbols (in any order), the dynamic section and the numbers of
 * relocations.  OUT says how they differ; it is unchanged if they do not.  *ORDER:
 * symbols have the same numbers in both.
 * INVALID_FORMAT: invalid ELF tables.  IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t host_dynamic_compare(const struct host_sections *a,
				   const struct host_sections *b, bool *order,
				   struct host_verdict *out, struct kpackx_error *why);

/* Set OUT to HOST_DIFFERS with that text, unless OUT has a difference already. */
void host_differs(struct host_verdict *out, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
