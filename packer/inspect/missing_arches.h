/* SPDX-License-Identifier: MIT */
/*
 * Architectures that binaries were built for without reaching an archive for them.  That
 * is right if the architecture is not installed at all, and a fault if other binaries
 * have archives for it.
 */
#ifndef PACKER_MARK_MISSING_ARCHES_H
#define PACKER_MARK_MISSING_ARCHES_H

#include <stdbool.h>
#include <stddef.h>

struct missing_arches_item {
	char *file, *arch;
	bool elsewhere; /* for the caller: an archive has code of other binaries for ARCH */
};

struct missing_arches {
	struct missing_arches_item *items;
	size_t count, cap;
};

/* Record that FILE lacks ARCH; both are copied. */
void missing_arches_add(struct missing_arches *list, const char *file, const char *arch);

/* Sort the items by architecture, then by file. */
void missing_arches_sort(struct missing_arches *list);

/* Whether item I is the first of its architecture; call after missing_arches_sort. */
bool absent_begins(const struct missing_arches *list, size_t i);

void missing_arches_fini(struct missing_arches *list);

#endif
