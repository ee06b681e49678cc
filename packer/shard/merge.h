/* SPDX-License-Identifier: MIT */
/* Joining the parts that all shards of a run have written: the output of one run, bit by bit. */
#ifndef PACKER_SHARD_MERGE_H
#define PACKER_SHARD_MERGE_H

#include <stdbool.h>
#include <stddef.h>

/* Was DIR written by a shard, finished or not? */
bool shard_is_part(const char *dir);

struct shard_merge_options {
	char *const *parts; /* in any order; one may be there twice */
	size_t n_parts;
	const char *out; /* becomes what OUTPUT would be without --shard */
	bool quiet, json;
};

/*
 * Check all parts, then write; they stay as they are.  Archives appear before the binaries that
 * name them, and what an interrupted run left is completed by another.  Exit status, after
 * telling what went wrong.
 */
int shard_merge(const struct shard_merge_options *options);

#endif
