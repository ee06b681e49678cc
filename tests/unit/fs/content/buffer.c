/* SPDX-License-Identifier: MIT */
#include "fs/content/internal.h"
#include <string.h>
#include "tests/unit/unit.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)
#define HUGE_PAGE (2 * MIB)

static struct buffer get(struct buffers *b, size_t size)
{
	struct buffer block;

	assert_true(buffers_get(b, size, &block));
	assert_true(block.cap >= size);
	memset(block.data, 0xa5, size);
	return block;
}

TEST(segments_share_huge_pages)
{
	struct buffer blocks[4], other, again;
	struct buffers b;

	buffers_init(&b, 4 * MIB);
	for (size_t i = 0; i < 4; i++) {
		blocks[i] = get(&b, i % 2 ? 512 * KIB : 300 * KIB);
		assert_int_equal((uintptr_t)blocks[i].data / HUGE_PAGE,
				 (uintptr_t)blocks[0].data / HUGE_PAGE);
		for (size_t j = 0; j < i; j++)
			assert_ptr_not_equal(blocks[i].data, blocks[j].data);
	}
	other = get(&b, 512 * KIB);
	assert_int_not_equal((uintptr_t)other.data / HUGE_PAGE,
			     (uintptr_t)blocks[0].data / HUGE_PAGE);
	buffers_put(&b, blocks[2]);
	again = get(&b, 400 * KIB);
	assert_ptr_equal(again.data, blocks[2].data);
	/* Blocks in use stay, and so do their bytes. */
	buffers_put(&b, other);
	buffers_trim(&b);
	assert_int_equal(blocks[3].data[512 * KIB - 1], 0xa5);
	buffers_put(&b, again);
	buffers_put(&b, blocks[0]);
	buffers_put(&b, blocks[1]);
	buffers_put(&b, blocks[3]);
	buffers_trim(&b);
	for (size_t i = 0; i < SLABS; i++)
		assert_null(b.slabs[i].data);
	buffers_fini(&b);
}

/* However many blocks are in use at once, few are kept. */
TEST(few_are_kept)
{
	static const size_t sizes[] = {100 * KIB, 512 * KIB, 600 * KIB,
				       3 * MIB,   4 * MIB,   5 * MIB};
	struct buffer blocks[60];
	struct buffers b;
	size_t kept = 0;

	buffers_init(&b, 4 * MIB);
	for (size_t i = 0; i < 60; i++)
		blocks[i] = get(&b, sizes[i % 6]);
	for (size_t i = 0; i < 60; i++)
		buffers_put(&b, blocks[i]);
	for (size_t i = 0; i < BUFFERS_KEPT; i++)
		kept += b.kept[i].cap;
	assert_int_equal(kept, b.kept_bytes);
	assert_in_range(kept, 4 * MIB, 12 * MIB);
	/* The next block is one of them, and what is left is counted. */
	blocks[0] = get(&b, 3 * MIB);
	assert_int_equal(b.kept_bytes, kept - blocks[0].cap);
	buffers_put(&b, blocks[0]);
	assert_int_equal(b.kept_bytes, kept);
	buffers_fini(&b);
}
