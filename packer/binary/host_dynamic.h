/* SPDX-License-Identifier: MIT */
/* What a host binary says to the dynamic loader. */
#ifndef PACKER_BINARY_HOST_DYNAMIC_H
#define PACKER_BINARY_HOST_DYNAMIC_H

#include "host_compare.h"
#include "host_sections.h"

/*
 * Compare the dynamic symbols (whatever their order), the dynamic section and the numbers of
 * relocations; OUT says how they differ, or is left alone.  *ORDER: symbols have the same
 * numbers in both.
 * INVALID_FORMAT: tables that lie.  IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t host_dynamic_compare(const struct host_sections *a,
				   const struct host_sections *b, bool *order,
				   struct host_verdict *out, struct kpackx_error *why);

/* OUT becomes HOST_DIFFERS, unless it says so already. */
void host_differs(struct host_verdict *out, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
