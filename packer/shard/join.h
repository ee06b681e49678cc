/* SPDX-License-Identifier: MIT */
/* Parts that make up one run, and the tree and the archives that they make together. */
#ifndef PART_JOIN_H
#define PART_JOIN_H

#include "replay.h"

struct part_join {
	struct part *parts; /* by index, each once */
	size_t n_parts;
	struct replay replay;
	struct archive_set *set; /* NULL: there is nothing to store */
};

/*
 * Open the N parts in DIRS and see that they belong together and are all there and whole.  OUT
 * must be closed in any case.  INVALID_ARGUMENT: they do not, or one is missing; INVALID_FORMAT.
 */
kpack_error_t part_join_open(char *const *dirs, size_t n, struct part_join *out,
			     struct kpackx_error *why);
void part_join_close(struct part_join *join);

/* Is OUT a directory that can be written while the parts stay?  INVALID_ARGUMENT: no. */
kpack_error_t part_join_check(const struct part_join *join, const char *out,
			      struct kpackx_error *why);

/* Write the archives of OUT, then its tree. */
kpack_error_t part_join_archives(struct part_join *join, const char *out,
				 struct progress *progress, struct kpackx_error *why);
kpack_error_t part_join_tree(const struct part_join *join, const char *out,
			     struct kpackx_error *why);

#endif
