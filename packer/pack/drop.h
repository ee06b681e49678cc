/* SPDX-License-Identifier: MIT */
/* Remove objects from a plan. */
#ifndef PACKER_PACK_PLAN_DROP_H
#define PACKER_PACK_PLAN_DROP_H

#include "plan.h"

/*
 * Remove the objects whose flag in DROP is set, with their keys.  DROP has a flag per
 * object.
 */
void plan_drop(struct plan *plan, const bool *drop);

#endif
