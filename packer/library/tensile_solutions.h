/* SPDX-License-Identifier: MIT */
/* The number of kernels in a Tensile database, if its first bytes state it. */
#ifndef PACKER_LIBRARY_TENSILE_SOLUTIONS_H
#define PACKER_LIBRARY_TENSILE_SOLUTIONS_H

#include <stdbool.h>
#include "core/base/span.h"

/*
 * HEAD is the beginning of a MessagePack map with the array "solutions", or with
 * "solutions_index", which has three numbers per solution.  The map is followed as long
 * as its values lie inside HEAD.  false: HEAD does not state the number.
 */
bool solutions_count(struct kp_span head, uint64_t *count);

/* As solutions_count, for a zlib stream (.dat.zlib). */
bool solutions_count_zlib(struct kp_span head, uint64_t *count);

#endif
