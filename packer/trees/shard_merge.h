/* SPDX-License-Identifier: MIT */
/*
 * Join the parts that all shards of a run have written; the result is the output of one
 * run, bit by bit.
 */
#ifndef PACKER_SHARD_MERGE_H
#define PACKER_SHARD_MERGE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a shard wrote DIR, finished or not. */
bool shard_is_part(const char *dir);

struct shard_merge_options {
	char *const *parts; /* in any order; a part may occur twice */
	size_t n_parts;
	const char *out; /* becomes what OUTPUT would be without --shard */
	bool quiet, json;
};

/*
 * Check all parts, then write; the parts stay as they are.  Archives appear before the
 * binaries that name them, and another run completes what an interrupted one left.
 * Returns an exit status, after reporting what went wrong.
 */
int shard_merge(const struct shard_merge_options *options);

#endif
