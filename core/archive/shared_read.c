/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "core/base/alloc.h"
#include "shared_internal.h"
#include "block_pool.h"

/* Blocks' worth of an object for which each block is decoded once. */
enum { STRETCH = 16 };

/* Bytes of one block that are wanted. */
struct piece {
	uint32_t block;
	uint32_t from, size; /* in the block */
	uint64_t to;         /* in the buffer */
};

struct pieces {
	struct piece *items;
	size_t n, cap;
};

/* The number of the extent of O that has the byte at OFFSET, which is inside O. */
static size_t extent_at(const struct kp_shared *s, const struct kp_shared_object *o,
			uint64_t offset)
{
	size_t low = o->first, high = o[1].first;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (s->extents[mid].at <= offset)
			low = mid;
		else
			high = mid;
	}
	return low;
}

/* Add SIZE unique bytes at POS, which belong to TO of the buffer. */
static bool add_bytes(const struct kp_shared *s, struct pieces *p, uint64_t pos,
		      uint64_t size, uint64_t to)
{
	while (size) {
		uint64_t from = pos % s->block_size, n = s->block_size - from;

		if (n > size)
			n = size;
		if (!kp_grow(&p->items, p->n, &p->cap, sizeof(*p->items)))
			return false;
		p->items[p->n++] = (struct piece){(uint32_t)(pos / s->block_size),
						  (uint32_t)from, (uint32_t)n, to};
		pos += n;
		to += n;
		size -= n;
	}
	return true;
}

static int by_block(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->block != y->block)
		return KP_ORDER(x->block, y->block);
	return KP_ORDER(x->to, y->to);
}

/* Collect the pieces of [BEGIN, END) of O, sorted by block. */
static kpack_error_t collect_pieces(const struct kp_shared *s,
				    const struct kp_shared_object *o, uint64_t begin,
				    uint64_t end, struct pieces *p,
				    struct kpackx_error *why)
{
	size_t i = extent_at(s, o, begin);

	p->n = 0;
	for (uint64_t at = begin; at < end; i++) {
		const struct kp_extent *e = &s->extents[i];
		uint64_t until = i + 1 < o[1].first ? e[1].at : o->size;

		if (until > end)
			until = end;
		if (!add_bytes(s, p, e->pos + (at - e->at), until - at, at - begin))
			return kp_fail_memory(why, p->cap * sizeof(*p->items),
					      "an object's extents");
		at = until;
	}
	qsort(p->items, p->n, sizeof(*p->items), by_block);
	return KPACK_SUCCESS;
}

static kpack_error_t copy_pieces(const struct kp_shared *s, const struct pieces *p,
				 uint8_t *buf, struct kpackx_error *why)
{
	for (size_t i = 0; i < p->n;) {
		const uint32_t block = p->items[i].block;
		struct kp_frame *f;

		KP_TRY(kp_pool_get(s, block + kp_shared_first_block(s), &f, why));
		for (; i < p->n && p->items[i].block == block; i++)
			memcpy(buf + p->items[i].to, kp_frame_bytes(f) + p->items[i].from,
			       p->items[i].size);
		kp_pool_put(f);
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_shared_read(const struct kp_shared *s, uint32_t object, uint64_t offset,
			     void *buf, uint64_t size, struct kpackx_error *why)
{
	const struct kp_shared_object *o = &s->objects[object];
	uint64_t stretch = STRETCH * s->block_size, end = offset + size;
	kpack_error_t err = KPACK_SUCCESS;
	struct pieces p = {0};

	for (uint64_t at = offset, next; at < end && !err; at = next) {
		next = (at / stretch + 1) * stretch;
		if (next > end)
			next = end;
		err = collect_pieces(s, o, at, next, &p, why);
		if (!err)
			err = copy_pieces(s, &p, (uint8_t *)buf + (at - offset), why);
	}
	free(p.items);
	return err;
}

uint64_t kp_shared_visits(const struct kp_shared *s, uint32_t object, uint64_t offset,
			  uint64_t size)
{
	const struct kp_shared_object *o = &s->objects[object];
	uint64_t end = offset + size, visits = 0, block = UINT64_MAX;
	size_t i = extent_at(s, o, offset);

	for (uint64_t at = offset; at < end; i++) {
		const struct kp_extent *e = &s->extents[i];
		uint64_t until = i + 1 < o[1].first ? e[1].at : o->size;
		uint64_t first = e->pos + (at - e->at), last;

		until = until < end ? until : end;
		last = (first + (until - at) - 1) / s->block_size;
		first /= s->block_size;
		visits += last - first + (first != block);
		block = last;
		at = until;
	}
	return visits;
}

void kp_shared_mark_blocks(const struct kp_shared *s, uint32_t object, bool *blocks)
{
	const struct kp_shared_object *o = &s->objects[object];

	for (size_t i = o->first; i < o[1].first; i++) {
		const struct kp_extent *e = &s->extents[i];
		uint64_t size = (i + 1 < o[1].first ? e[1].at : o->size) - e->at;

		for (uint64_t b = e->pos / s->block_size;
		     b <= (e->pos + size - 1) / s->block_size; b++)
			blocks[b] = true;
	}
}

kpack_error_t kp_shared_is_trained(const struct kp_shared *s, bool *trained,
				   struct kpackx_error *why)
{
	struct kp_frame *f;

	*trained = false;
	if (s->dictionary_size < 4)
		return KPACK_SUCCESS;
	KP_TRY(kp_pool_get(s, 0, &f, why));
	*trained = kp_le32(kp_frame_bytes(f)) == KP_TRAINED_DICTIONARY;
	kp_pool_put(f);
	return KPACK_SUCCESS;
}
