/* SPDX-License-Identifier: MIT */
/* Parts that make up one run, and the tree and the archives that they make together. */
#ifndef PACKER_SHARD_JOIN_H
#define PACKER_SHARD_JOIN_H

#include "replay.h"

struct shard_join {
	struct shard_part *parts; /* by index, each once */
	size_t n_parts;
	struct replay replay;
	struct archive_set *set; /* NULL: there is nothing to store */
};

/*
 * Open the N parts in DIRS and see that they belong together and are all there and whole.  OUT
 * must be closed in any case.  INVALID_ARGUMENT: they do not, or one is missing; INVALID_FORMAT.
 */
kpack_error_t shard_join_open(char *const *dirs, size_t n, struct shard_join *out,
			      struct kpackx_error *why);
void shard_join_close(struct shard_join *join);

/* Is OUT a directory that can be written while the parts stay?  INVALID_ARGUMENT: no. */
kpack_error_t shard_join_check(const struct shard_join *join, const char *out,
			       struct kpackx_error *why);

/* Write the archives of OUT, then its tree. */
kpack_error_t shard_join_archives(struct shard_join *join, const char *out,
				  struct progress *progress, struct kpackx_error *why);
kpack_error_t shard_join_tree(const struct shard_join *join, const char *out,
			      struct kpackx_error *why);

#endif
