/* SPDX-License-Identifier: MIT */
/* Whether an existing part is the one that a run would write. */
#ifndef PACKER_SHARD_DONE_H
#define PACKER_SHARD_DONE_H

#include "packer/pack/run.h"

/*
 * Whether P's output has the record of this very run (shard, options, version, plan),
 * made after the last change in INPUT, and every file of it is whole.  False if that
 * cannot be determined.  P is planned, PLAN is the digest of its plan, and no other run
 * is at work in the part.
 */
bool shard_done(const struct packing *p, const uint8_t plan[16]);

#endif
