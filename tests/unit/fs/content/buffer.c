/* SPDX-License-Identifier: MIT */
#include "fs/content/internal.h"
#include <string.h>
#include "tests/unit/unit.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)
#define UNIT ((size_t)ROOM_UNIT)

static struct buffer get(struct buffers *b, size_t size)
{
	struct buffer block;

	assert_true(buffers_get(b, size, &block));
	assert_true(block.cap >= size);
	memset(block.data, 0xa5, size);
	return block;
}

static bool is_in_room(const struct buffers *b, struct buffer block)
{
	return block.data >= b->room &&
	       block.data + block.cap <= b->room + b->n_units * UNIT;
}

/* What is returned is the first to be given away again: few pages are ever touched. */
TEST(blocks_lie_close_together)
{
	static const size_t sizes[] = {512 * KIB, 300 * KIB, 1, 7 * MIB, 256 * KIB};
	struct buffer blocks[5], again;
	struct buffers b;
	size_t end = 0;

	buffers_init(&b, SIZE_MAX);
	assert_int_equal(b.n_units, ROOM / ROOM_UNIT);
	for (size_t i = 0; i < 5; i++) {
		blocks[i] = get(&b, sizes[i]);
		assert_int_equal(is_in_room(&b, blocks[i]), sizes[i] > 1);
		if (sizes[i] > 1)
			assert_ptr_equal(blocks[i].data, b.room + end);
		if (sizes[i] > 1)
			end += (sizes[i] + UNIT - 1) / UNIT * UNIT;
	}
	buffers_put(&b, blocks[1]);
	again = get(&b, 384 * KIB);
	assert_ptr_equal(again.data, blocks[1].data);
	/* Blocks in use stay, and so do their bytes. */
	buffers_put(&b, blocks[0]);
	buffers_put(&b, blocks[3]);
	buffers_trim(&b);
	assert_int_equal(again.data[384 * KIB - 1], 0xa5);
	assert_int_equal(blocks[4].data[0], 0xa5);
	/* A huge page that was unused is a fresh one. */
	assert_int_equal(b.room[4 * MIB], 0);
	buffers_put(&b, again);
	buffers_put(&b, blocks[4]);
	buffers_put(&b, blocks[2]);
	buffers_trim(&b);
	for (size_t i = 0; i < b.n_units; i++)
		assert_int_equal(b.room[i * UNIT], 0);
	buffers_fini(&b);
}

/* However many blocks are in use at once, only those in the room are kept. */
TEST(few_are_kept)
{
	static const size_t sizes[] = {100 * KIB, 512 * KIB, 600 * KIB,
				       3 * MIB,   4 * MIB,   8 * MIB};
	struct buffer blocks[60];
	struct buffers b;
	size_t kept = 0;

	buffers_init(&b, 16 * MIB);
	for (size_t i = 0; i < 60; i++) {
		blocks[i] = get(&b, sizes[i % 6]);
		if (is_in_room(&b, blocks[i]))
			kept += blocks[i].cap;
		assert_true(sizes[i % 6] <= 4 * MIB || !is_in_room(&b, blocks[i]));
	}
	assert_in_range(kept, 12 * MIB, 16 * MIB);
	for (size_t i = 0; i < 60; i++)
		buffers_put(&b, blocks[i]);
	blocks[0] = get(&b, 4 * MIB);
	assert_ptr_equal(blocks[0].data, b.room);
	buffers_put(&b, blocks[0]);
	buffers_fini(&b);
}

/* Without a room every block is mapped alone. */
TEST(little_memory_has_no_room)
{
	struct buffer block;
	struct buffers b;

	buffers_init(&b, 1 * MIB);
	assert_null(b.room);
	block = get(&b, 300 * KIB);
	buffers_trim(&b);
	buffers_put(&b, block);
	buffers_fini(&b);
}
