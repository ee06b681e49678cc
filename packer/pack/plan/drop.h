/* SPDX-License-Identifier: MIT */
/* Taking objects out of a plan. */
#ifndef PACKER_PACK_PLAN_DROP_H
#define PACKER_PACK_PLAN_DROP_H

#include "plan.h"

/* Store nothing of the objects of databases for which DROP has a flag. */
kpack_error_t plan_drop(struct plan *plan, const bool *drop, struct kpackx_error *why);

#endif
