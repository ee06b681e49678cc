/* SPDX-License-Identifier: MIT */
/*
 * The databases of Tensile and TensileLite, which rocBLAS, hipBLASLt and hipSPARSELt keep
 * in their directories "library", or which users put into any other directory.  All
 * generations are covered: one library for all, a file per kind of problem, a directory
 * per GPU, and mixtures of these.
 */
#ifndef PACKER_LIBRARY_TENSILE_TENSILE_H
#define PACKER_LIBRARY_TENSILE_TENSILE_H

#include "library.h"

/* The structure that library.data points to. */
struct tensile {
	/* components: all files below belong to the library; others: directory.h */
	const char *directory;
	/*
	 * In a tree as the paper draws it: the path below DIRECTORY, with a '/' at its
	 * end, that holds the GPUs' directories; "": DIRECTORY itself.  NULL: the paper
	 * draws none.
	 */
	const char *drawn_in;
	const char *drawn_with; /* a file that such a tree must have; NULL: none */
};

bool tensile_probe(const struct library *self, const struct library_question *q);
kpack_error_t tensile_check(const struct library *self, const struct library_question *q,
			    bool *mine, struct library_object *out,
			    struct kpackx_error *why);

#endif
