/* SPDX-License-Identifier: MIT */
/* Is a part that is there the one that a run would write? */
#ifndef PACKER_SHARD_DONE_H
#define PACKER_SHARD_DONE_H

#include "packer/pack/run.h"

/*
 * Has P's output the record of this very run - shard, options, version, plan - made after anything
 * in INPUT was changed last, and is every file of it whole?  What cannot be found out is no.
 * P is planned, PLAN the digest of its plan, and no other run at work in the part.
 */
bool shard_done(const struct packing *p, const uint8_t plan[16]);

#endif
