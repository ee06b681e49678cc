/* SPDX-License-Identifier: MIT */
/* List the files in one tree of a shard. */
#ifndef PACKER_RECOMBINE_WALK_H
#define PACKER_RECOMBINE_WALK_H

#include "recombine_trees.h"

/* Fill TREE's files and prefixes.  Errors of shard_trees_read. */
kpack_error_t shard_walk(struct shard_tree *tree, struct kpackx_error *why);

#endif
