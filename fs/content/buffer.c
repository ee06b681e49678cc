/* SPDX-License-Identifier: MIT */
/*
 * Three kinds of blocks: small ones from malloc; others from the room, which is one mapping of
 * huge pages, at the first place that is free, so that few of its pages are touched again and
 * again; mapped ones, if they are too large for the room, or it is full.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "internal.h"

/* Blocks of MAP_MIN bytes or more are not from malloc; of HUGE or more, aligned for huge pages. */
#define MAP_MIN (256 << 10)
#define HUGE (2 << 20)
#define PAGE 4096

static size_t page_up(uint64_t size)
{
	return (size_t)((size + PAGE - 1) & ~(uint64_t)(PAGE - 1));
}

/* Map SIZE bytes; HUGE or more at a multiple of it, so that one page fault maps 2 MiB. */
static uint8_t *map_block(size_t size)
{
	size_t slack = size >= HUGE ? HUGE : 0, before;
	uint8_t *all = mmap(NULL, size + slack, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (all == MAP_FAILED)
		return NULL;
	if (!slack)
		return all;
	before = -(uintptr_t)all & (HUGE - 1);
	if (before)
		munmap(all, before);
	munmap(all + before + size, HUGE - before);
	madvise(all + before, size, MADV_HUGEPAGE);
	return all + before;
}

void buffers_init(struct buffers *b, uint64_t size)
{
	size = (size < ROOM ? size : ROOM) / HUGE * HUGE;
	*b = (struct buffers){.block_max = (size_t)size / ROOM_SHARE};
	pthread_mutex_init(&b->lock, NULL);
	if (size)
		b->room = map_block((size_t)size);
	if (b->room)
		b->n_units = (unsigned)(size / ROOM_UNIT);
}

void buffers_trim(struct buffers *b)
{
	const unsigned n = HUGE / ROOM_UNIT;

	pthread_mutex_lock(&b->lock);
	for (unsigned i = 0; i < b->n_units; i += n)
		if (!memchr(b->used + i, true, n))
			madvise(b->room + (size_t)i * ROOM_UNIT, HUGE, MADV_DONTNEED);
	pthread_mutex_unlock(&b->lock);
}

void buffers_fini(struct buffers *b)
{
	if (b->room)
		munmap(b->room, (size_t)b->n_units * ROOM_UNIT);
	pthread_mutex_destroy(&b->lock);
}

bool buffers_get(struct buffers *b, uint64_t size, struct buffer *out)
{
	uint64_t n = (size + ROOM_UNIT - 1) / ROOM_UNIT;
	unsigned end = 0, free_units = 0;

	if (size < MAP_MIN) {
		*out = (struct buffer){malloc((size_t)size), (size_t)size};
		return out->data != NULL;
	}
	pthread_mutex_lock(&b->lock);
	while (size <= b->block_max && free_units < n && end < b->n_units)
		free_units = b->used[end++] ? 0 : free_units + 1;
	if (free_units == n)
		memset(b->used + end - n, true, (size_t)n);
	pthread_mutex_unlock(&b->lock);
	if (free_units == n)
		*out = (struct buffer){b->room + (end - n) * ROOM_UNIT,
				       (size_t)n * ROOM_UNIT};
	else
		*out = (struct buffer){map_block(page_up(size)), page_up(size)};
	return out->data != NULL;
}

void buffers_put(struct buffers *b, struct buffer block)
{
	uintptr_t at = (uintptr_t)block.data - (uintptr_t)b->room;

	if (block.cap < MAP_MIN) {
		free(block.data);
	} else if (block.data && at >= (size_t)b->n_units * ROOM_UNIT) {
		munmap(block.data, block.cap);
	} else if (block.data) {
		pthread_mutex_lock(&b->lock);
		memset(b->used + at / ROOM_UNIT, false, block.cap / ROOM_UNIT);
		pthread_mutex_unlock(&b->lock);
	}
}
