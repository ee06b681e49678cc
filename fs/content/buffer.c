/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <sys/mman.h>
#include "buffer.h"

/* Blocks of MAP_MIN bytes or more are mapped; of HUGE or more, aligned for huge pages. */
#define MAP_MIN (256 << 10)
#define HUGE (2 << 20)
/* Larger blocks are not kept.  Four of this size are small next to any cache. */
#define KEEP_MAX (4 << 20)
#define PAGE 4096

static size_t page_up(uint64_t size)
{
	return (size_t)((size + PAGE - 1) & ~(uint64_t)(PAGE - 1));
}

/* Map SIZE bytes at a multiple of HUGE, so that one page fault maps 2 MiB. */
static uint8_t *map_huge(size_t size)
{
	uint8_t *all = mmap(NULL, size + HUGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (all == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)all & (HUGE - 1);
	if (before)
		munmap(all, before);
	munmap(all + before + size, HUGE - before);
	madvise(all + before, size, MADV_HUGEPAGE);
	return all + before;
}

static uint8_t *map_block(size_t size)
{
	uint8_t *p;

	if (size >= HUGE)
		return map_huge(size);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

void buffers_init(struct buffers *b, size_t keep_max)
{
	*b = (struct buffers){.keep_max = keep_max < KEEP_MAX ? keep_max : KEEP_MAX};
	pthread_mutex_init(&b->lock, NULL);
}

void buffers_trim(struct buffers *b)
{
	struct buffer kept[BUFFERS_KEPT];

	pthread_mutex_lock(&b->lock);
	for (int i = 0; i < BUFFERS_KEPT; i++) {
		kept[i] = b->kept[i];
		b->kept[i] = (struct buffer){0};
	}
	pthread_mutex_unlock(&b->lock);
	for (int i = 0; i < BUFFERS_KEPT; i++)
		if (kept[i].data)
			munmap(kept[i].data, kept[i].cap);
}

void buffers_fini(struct buffers *b)
{
	buffers_trim(b);
	pthread_mutex_destroy(&b->lock);
}

/* Take the smallest kept block that is large enough. */
static bool take_kept(struct buffers *b, size_t size, struct buffer *out)
{
	struct buffer *best = NULL;

	pthread_mutex_lock(&b->lock);
	for (int i = 0; i < BUFFERS_KEPT; i++) {
		struct buffer *k = &b->kept[i];
		if (k->cap >= size && (!best || k->cap < best->cap))
			best = k;
	}
	if (best) {
		*out = *best;
		*best = (struct buffer){0};
	}
	pthread_mutex_unlock(&b->lock);
	return best != NULL;
}

bool buffers_get(struct buffers *b, uint64_t size, struct buffer *out)
{
	if (size < MAP_MIN) {
		*out = (struct buffer){malloc((size_t)size), (size_t)size};
		return out->data != NULL;
	}
	if (take_kept(b, (size_t)size, out))
		return true;
	*out = (struct buffer){map_block(page_up(size)), page_up(size)};
	if (!out->data)
		*out = (struct buffer){0};
	return out->data != NULL;
}

void buffers_put(struct buffers *b, struct buffer block)
{
	struct buffer *least = NULL;

	if (block.cap < MAP_MIN) {
		free(block.data);
		return;
	}
	if (block.cap <= b->keep_max) { /* replace the smallest kept block */
		pthread_mutex_lock(&b->lock);
		least = &b->kept[0];
		for (int i = 1; i < BUFFERS_KEPT; i++)
			if (b->kept[i].cap < least->cap)
				least = &b->kept[i];
		if (least->cap < block.cap) {
			struct buffer old = *least;
			*least = block;
			block = old;
		}
		pthread_mutex_unlock(&b->lock);
	}
	if (block.data)
		munmap(block.data, block.cap);
}
