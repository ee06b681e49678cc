/* SPDX-License-Identifier: MIT */
/* How many kernels a Tensile database has, as far as its first bytes say it. */
#ifndef PACKER_LIBRARY_TENSILE_SOLUTIONS_H
#define PACKER_LIBRARY_TENSILE_SOLUTIONS_H

#include <stdbool.h>
#include "core/base/span.h"

/*
 * HEAD is the beginning of a MessagePack map with the array "solutions", or with
 * "solutions_index" of three numbers for each.  A map is followed as long as its values lie
 * inside HEAD.  false: HEAD does not say it.
 */
bool solutions_count(struct kp_span head, uint64_t *count);

/* The same of a zlib stream (.dat.zlib).  Always false without zlib. */
bool solutions_count_zlib(struct kp_span head, uint64_t *count);

#endif
