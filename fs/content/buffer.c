/* SPDX-License-Identifier: MIT */
/*
 * Three kinds of blocks: small ones from malloc; those of a segment's size from slabs,
 * which are huge pages cut into four; larger ones mapped, of which a few are kept when
 * they are returned.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include "internal.h"

/* Blocks of MAP_MIN bytes or more are mapped; of HUGE or more, aligned for huge pages. */
#define MAP_MIN (256 << 10)
#define HUGE (2 << 20)
/* Larger blocks are not kept, nor more bytes than KEPT_BLOCKS of the largest have. */
#define KEEP_MAX (4 << 20)
#define KEPT_BLOCKS 3
#define PAGE 4096
/* The blocks of a slab. */
#define SLAB_BLOCK (512 << 10)
#define SLAB_BLOCKS (HUGE / SLAB_BLOCK)
#define SLAB_FULL ((1U << SLAB_BLOCKS) - 1)

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

/* --- blocks ----------------------------------------------------------------------- */

void buffers_init(struct buffers *b, size_t keep_max)
{
	*b = (struct buffers){.keep_max = keep_max < KEEP_MAX ? keep_max : KEEP_MAX};
	b->n_slabs = (unsigned)(4 * b->keep_max / HUGE);
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
	b->kept_bytes = 0;
	for (unsigned i = 0; i < b->n_slabs; i++)
		if (b->slabs[i].data && !b->slabs[i].used) {
			munmap(b->slabs[i].data, HUGE);
			b->slabs[i].data = NULL;
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

bool buffers_get(struct buffers *b, uint64_t size, struct buffer *out)
{
	struct buffer *best = NULL; /* the smallest kept block that is large enough */
	struct slab *slab = NULL;   /* one with a free block, if possible mapped */
	unsigned n = 0;

	if (size < MAP_MIN) {
		*out = (struct buffer){malloc((size_t)size), (size_t)size};
		return out->data != NULL;
	}
	*out = (struct buffer){0};
	pthread_mutex_lock(&b->lock);
	for (unsigned i = 0;
	     size <= SLAB_BLOCK && i < b->n_slabs && !(slab && slab->data); i++)
		if (b->slabs[i].used != SLAB_FULL && (!slab || b->slabs[i].data))
			slab = &b->slabs[i];
	if (slab && !slab->data)
		slab->data = map_block(HUGE);
	if (slab && slab->data) {
		while (slab->used >> n & 1)
			n++;
		slab->used |= 1U << n;
		*out = (struct buffer){slab->data + (size_t)n * SLAB_BLOCK, SLAB_BLOCK};
	}
	for (int i = 0; !out->data && i < BUFFERS_KEPT; i++) {
		struct buffer *k = &b->kept[i];

		if (k->cap >= size && (!best || k->cap < best->cap))
			best = k;
	}
	if (best) {
		*out = *best;
		b->kept_bytes -= best->cap;
		*best = (struct buffer){0};
	}
	pthread_mutex_unlock(&b->lock);
	if (out->data)
		return true;
	out->data = map_block(page_up(size));
	out->cap = out->data ? page_up(size) : 0;
	return out->data;
}

void buffers_put(struct buffers *b, struct buffer block)
{
	struct buffer *least = &b->kept[0];

	if (block.cap < MAP_MIN) {
		free(block.data);
		return;
	}
	pthread_mutex_lock(&b->lock);
	for (unsigned i = 0; block.cap == SLAB_BLOCK && i < b->n_slabs; i++) {
		uintptr_t at = (uintptr_t)block.data - (uintptr_t)b->slabs[i].data;

		if (b->slabs[i].data && at < HUGE) {
			b->slabs[i].used &= ~(1U << at / SLAB_BLOCK);
			block = (struct buffer){0};
		}
	}
	if (block.data && block.cap <= b->keep_max) {
		/* it replaces nothing, or the smallest kept block */
		for (int i = 1; i < BUFFERS_KEPT; i++)
			if (b->kept[i].cap < least->cap)
				least = &b->kept[i];
		if (least->cap < block.cap &&
		    b->kept_bytes - least->cap + block.cap <= KEPT_BLOCKS * b->keep_max) {
			struct buffer old = *least;

			b->kept_bytes += block.cap - old.cap;
			*least = block;
			block = old;
		}
	}
	pthread_mutex_unlock(&b->lock);
	if (block.data)
		munmap(block.data, block.cap);
}
