/* SPDX-License-Identifier: MIT */
/* Join the parts that make up one run into a tree and its archives. */
#ifndef PACKER_SHARD_JOIN_H
#define PACKER_SHARD_JOIN_H

#include "packer/files/tree_write.h"
#include "shard_replay.h"

/* A device or the like, or a link to one, that the user may not make. */
struct shard_left {
	const struct shard_item *item;
	char *path; /* in its part */
	char *why;
};

struct shard_join {
	struct shard_part *parts; /* sorted by index, each once */
	size_t n_parts;
	struct replay replay;
	struct archive_set *set; /* NULL: there is nothing to store */
	struct tree_write tree;
	struct shard_left *left; /* of what shard_join_tree left out */
	size_t n_left, left_cap;
};

/*
 * Open the N parts in DIRS, and check that they belong together, that none is missing and
 * that all are whole.  The caller must close OUT in any case.
 * INVALID_ARGUMENT: they do not belong together, or one is missing.  INVALID_FORMAT: one
 * is not whole.
 */
kpack_error_t shard_join_open(char *const *dirs, size_t n, struct shard_join *out,
			      struct kpackx_error *why);
void shard_join_close(struct shard_join *join);

/* Check that OUT can be written while the parts stay.  INVALID_ARGUMENT: it cannot. */
kpack_error_t shard_join_check(const struct shard_join *join, const char *out,
			       struct kpackx_error *why);

/* First write the archives of OUT, which is borrowed, then its tree. */
kpack_error_t shard_join_archives(struct shard_join *join, const char *out,
				  struct progress *progress, struct kpackx_error *why);
kpack_error_t shard_join_tree(struct shard_join *join, struct kpackx_error *why);

#endif
