/* SPDX-License-Identifier: MIT */
/*
 * The reach of a span of an object: the number of extents and the blocks that a reader of
 * the span meets.  Spans are runs of block_size bytes, from the object's first byte on.
 * The writer keeps to the limits of the format by it, and readers check them.
 */
#ifndef KP_CORE_SHARED_REACH_H
#define KP_CORE_SHARED_REACH_H

#include "shared.h"

struct kp_reach {
	uint64_t block_size;
	unsigned most;       /* blocks in a span */
	uint64_t span;       /* number of the span that the rest is about */
	unsigned n, extents; /* blocks; extents that begin in the span */
	uint32_t blocks[KP_SHARED_SPAN_BLOCKS];
};

/* Begin an object; MOST is at most KP_SHARED_SPAN_BLOCKS. */
void kp_reach_begin(struct kp_reach *r, uint64_t block_size, unsigned most);

/*
 * Add the extent of SIZE bytes, at least 1, at AT of the object, whose bytes are at POS.
 * false: a span would reach too much; then R is not what it was.  Blocks have numbers of
 * 32 bits.
 */
bool kp_reach_add(struct kp_reach *r, uint64_t at, uint64_t pos, uint64_t size);

#endif
