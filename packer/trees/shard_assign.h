/* SPDX-License-Identifier: MIT */
/* Assign the paths of a run to the shards of the machines that share it. */
#ifndef PACKER_SHARD_ASSIGN_H
#define PACKER_SHARD_ASSIGN_H

#include "packer/pack/plan.h"
#include "packer/pack/shard_number.h"

/*
 * Spread N items over COUNT shards: the most costly item first (the first of equal ones),
 * each to the least loaded shard (the lowest of equal ones).  OWNER gets the index of
 * each item's shard, from 1.  So no shard has more than an equal part plus the most
 * costly item.
 */
void shard_spread(const uint64_t *costs, size_t n, unsigned count, unsigned *owner);

/*
 * Returns, on the heap, a flag per entry of SCAN: whether SHARD owns the path.  All
 * paths of one file have one owner; directories have none.  A file costs its bytes (with
 * ARCHIVES_ONLY nothing) and those of the objects that PLAN stores of it.
 */
bool *shard_assign(const struct scan *scan, const struct plan *plan, bool archives_only,
		   const struct shard *shard);

#endif
