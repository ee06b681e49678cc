/* SPDX-License-Identifier: MIT */
/* One of several machines that share a run: which of the paths are its own. */
#ifndef PACKER_SHARD_ASSIGN_H
#define PACKER_SHARD_ASSIGN_H

#include "packer/pack/plan/plan.h"
#include "packer/pack/shard_number.h"

/*
 * Spread N items over COUNT shards: the most costly first (the first of equal ones), each to
 * the least loaded, of equal ones the lowest.  OWNER gets the index of each item's, from 1.  So
 * no shard has more than an equal part and the most costly item.  OUT_OF_MEMORY.
 */
kpack_error_t shard_spread(const uint64_t *costs, size_t n, unsigned count,
			   unsigned *owner, struct kpackx_error *why);

/*
 * Whose is each path of SCAN?  All paths of one file have one owner; directories have none, 0.
 * A file costs its bytes (with ARCHIVES_ONLY nothing) and those of the objects that PLAN stores
 * of it.  MINE is per entry, on the heap.
 */
kpack_error_t shard_assign(const struct scan *scan, const struct plan *plan,
			   bool archives_only, const struct shard *shard, bool **mine,
			   struct kpackx_error *why);

#endif
