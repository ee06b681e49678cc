/* SPDX-License-Identifier: MIT */
/* Join trees that kpack split wrote into one; what it may join is at merge_trees.c's top. */
#ifndef PACKER_TREES_MERGE_TREES_H
#define PACKER_TREES_MERGE_TREES_H

#include <stdbool.h>
#include <stddef.h>
#include "core/base/errors.h"

/*
 * Find out whether the N operands ARE trees to join into OUT: directories without archives
 * directly in them, and OUT (or NULL) is not called as an archive.
 */
kpack_error_t merge_trees_look(char *const *operands, size_t n, const char *out,
			       bool *are, struct kpackx_error *why);

struct merge_trees_args {
	char *const *trees; /* in order: the first has precedence */
	size_t n_trees;
	const char *out;
	const char *const
		*prefer; /* trees that win where trees differ, the best one first */
	size_t n_prefer;
	bool force; /* replace OUT */
	bool json, quiet;
};

/* Returns the exit status, after reporting what differs; then OUT is as it was. */
int merge_trees(const struct merge_trees_args *args);

#endif
