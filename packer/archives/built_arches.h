/* SPDX-License-Identifier: MIT */
/*
 * The architectures that a converted binary was built for: those of its layout, and those
 * for which its archives have an object of it, which other builds may have added; and
 * which of them are installed for it.
 */
#ifndef PACKER_BINARY_BUILT_ARCHES_H
#define PACKER_BINARY_BUILT_ARCHES_H

#include "binary.h"
#include "reachable_archives.h"

struct built_arches {
	const char **items; /* sorted; strings belong to the layout or the archives */
	size_t count;
	bool *installed; /* per item */
	bool *in_layout; /* per item */
};

/*
 * Find the architectures of B, which reaches the archives in REACH.  The caller passes A
 * as zeros, and must finish it in any case.
 */
void built_arches_find(const struct binary *b, const struct reach *reach,
		       struct built_arches *a);
void built_arches_fini(struct built_arches *a);

/* The number of ARCH among the items; false: it is none of them. */
bool built_arches_number(const struct built_arches *a, const char *arch, size_t *number);
bool built_arches_installed(const struct built_arches *a, const char *arch);

#endif
