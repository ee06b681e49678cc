/* SPDX-License-Identifier: MIT */
/*
 * The databases of Tensile and TensileLite: what rocBLAS, hipBLASLt and hipSPARSELt have in
 * their directories "library", of every generation: one library for all, a file per kind of
 * problem, a directory per GPU, and mixtures of them.
 */
#ifndef PACKER_LIBRARY_TENSILE_TENSILE_H
#define PACKER_LIBRARY_TENSILE_TENSILE_H

#include "packer/library/library.h"

/* What library.data points to. */
struct tensile {
	const char *directory; /* components: all files below are its */
	/*
	 * Where the GPUs' directories of a tree as the paper draws it stand below that, with
	 * '/' behind it; "": right in it.  NULL: the paper draws none.
	 */
	const char *drawn_in;
	const char *drawn_with; /* the file that tells such a tree; NULL: nothing must */
};

bool tensile_probe(const struct library *self, const struct library_question *q);
kpack_error_t tensile_check(const struct library *self, const struct library_question *q,
			    bool *mine, struct library_object *out,
			    struct kpackx_error *why);

#endif
