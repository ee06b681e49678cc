/* SPDX-License-Identifier: MIT */
#include "block_reach.h"

void kp_reach_begin(struct kp_reach *r, uint64_t block_size, unsigned most)
{
	r->block_size = block_size;
	r->most = most;
	r->span = UINT64_MAX;
}

static void enter_span(struct kp_reach *r, uint64_t span)
{
	if (span == r->span)
		return;
	r->span = span;
	r->n = r->extents = 0;
}

static bool add_block(struct kp_reach *r, uint32_t block)
{
	for (unsigned i = r->n; i-- > 0;)
		if (r->blocks[i] == block)
			return true;
	if (r->n >= r->most)
		return false;
	r->blocks[r->n++] = block;
	return true;
}

/* Add SIZE bytes that are inside a span. */
static bool add_part(struct kp_reach *r, uint64_t pos, uint64_t size)
{
	uint64_t first = pos / r->block_size, last = (pos + size - 1) / r->block_size;

	return add_block(r, (uint32_t)first) &&
	       (first == last || add_block(r, (uint32_t)last));
}

bool kp_reach_add(struct kp_reach *r, uint64_t at, uint64_t pos, uint64_t size)
{
	uint64_t span = at / r->block_size, left = (span + 1) * r->block_size - at, skip;

	enter_span(r, span);
	if (++r->extents > KP_SHARED_SPAN_EXTENTS)
		return false;
	if (!add_part(r, pos, size < left ? size : left))
		return false;
	if (size <= left)
		return true;
	/* a span that the extent fills reaches two blocks */
	skip = left + (size - left - 1) / r->block_size * r->block_size;
	enter_span(r, (at + skip) / r->block_size);
	return add_part(r, pos + skip, size - skip);
}
