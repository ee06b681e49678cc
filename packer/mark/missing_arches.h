/* SPDX-License-Identifier: MIT */
/*
 * Architectures that binaries were built for, and of which they reach no archive.  That is
 * right where nobody installed them, and a fault where others have theirs.
 */
#ifndef ABSENT_H
#define ABSENT_H

#include <stdbool.h>
#include <stddef.h>
#include "core/base/errors.h"

struct absent_item {
	char *file, *arch;
	bool elsewhere; /* for the caller: other binaries have theirs */
};

struct absent {
	struct absent_item *items;
	size_t count, cap;
};

/* FILE lacks ARCH; both are copied.  OUT_OF_MEMORY. */
kpack_error_t absent_add(struct absent *list, const char *file, const char *arch,
			 struct kpackx_error *why);

/* Order them by architecture, then by file. */
void absent_sort(struct absent *list);

/* Is item I the first of its architecture?  After absent_sort. */
bool absent_begins(const struct absent *list, size_t i);

void absent_fini(struct absent *list);

#endif
