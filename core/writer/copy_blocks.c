/* SPDX-License-Identifier: MIT */
/* Objects of another shared archive, with its blocks as they are stored. */
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/scheme.h"
#include "core/archive/shared.h"
#include "dictionary.h"
#include "internal.h"

/* Bytes of the other archive's run of unique bytes. */
struct range {
	uint64_t begin, end;
};

/* Where a range is in the new archive. */
struct move {
	struct range from;
	uint64_t to;
	bool whole; /* it is of whole blocks, which are copied */
};

struct blocks_copy {
	struct kp_writer *w;
	const struct kp_shared *from;
	const uint32_t *objects;
	uint32_t n_objects;
	uint64_t others;
	/* bytes of the objects: ascending, none touches the next one */
	struct range *used;
	size_t n_used, used_cap;
	uint64_t used_bytes;
	struct move *moves; /* ascending; together all that is used */
	size_t n_moves, moves_cap;
	struct kp_copied copied;
	struct kp_share_extent *extents; /* of one object */
	size_t n_extents, extents_cap;
};

static void blocks_copy_fini(struct blocks_copy *c)
{
	free(c->used);
	free(c->moves);
	free(c->copied.blocks);
	free(c->extents);
}

/* --- what is used ----------------------------------------------------------------------- */

static int by_begin(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return KP_ORDER(x->begin, y->begin);
}

static bool list_extents(struct blocks_copy *c)
{
	for (uint32_t i = 0; i < c->n_objects; i++) {
		const struct kp_shared_object *o = &c->from->objects[c->objects[i]];

		for (size_t k = o->first; k < o[1].first; k++) {
			uint64_t pos = c->from->extents[k].pos;
			uint64_t size = kp_extent_size(c->from, o, k);

			if (!kp_grow(&c->used, c->n_used, &c->used_cap, sizeof(*c->used)))
				return false;
			c->used[c->n_used++] = (struct range){pos, pos + size};
		}
	}
	return true;
}

static kpack_error_t find_used(struct blocks_copy *c, struct kpackx_error *why)
{
	size_t n = 0;

	if (!list_extents(c))
		return kp_fail_memory(why, c->n_used * sizeof(*c->used), "extents");
	if (c->n_used)
		qsort(c->used, c->n_used, sizeof(*c->used), by_begin);
	for (size_t i = 0; i < c->n_used; i++) {
		const struct range *r = &c->used[i];

		if (n && r->begin <= c->used[n - 1].end) {
			if (r->end > c->used[n - 1].end)
				c->used[n - 1].end = r->end;
		} else {
			c->used[n++] = *r;
		}
	}
	c->n_used = n;
	for (size_t i = 0; i < n; i++)
		c->used_bytes += c->used[i].end - c->used[i].begin;
	return KPACK_SUCCESS;
}

/* --- where it goes ---------------------------------------------------------------------- */

/* The whole blocks that R has. */
static struct range whole_part(struct range r)
{
	uint64_t begin = r.begin / KP_SHARE_BLOCK + (r.begin % KP_SHARE_BLOCK != 0);
	uint64_t end = r.end / KP_SHARE_BLOCK;

	if (begin >= end)
		return (struct range){r.end, r.end};
	return (struct range){begin * KP_SHARE_BLOCK, end * KP_SHARE_BLOCK};
}

static bool add_move(struct blocks_copy *c, uint64_t begin, uint64_t end, bool whole,
		     uint64_t *to)
{
	if (begin == end)
		return true;
	if (!kp_grow(&c->moves, c->n_moves, &c->moves_cap, sizeof(*c->moves)))
		return false;
	c->moves[c->n_moves++] = (struct move){{begin, end}, *to, whole};
	*to += end - begin;
	return true;
}

static uint64_t count_whole(const struct blocks_copy *c)
{
	uint64_t n = 0;

	for (size_t i = 0; i < c->n_used; i++) {
		struct range whole = whole_part(c->used[i]);

		n += (whole.end - whole.begin) / KP_SHARE_BLOCK;
	}
	return n;
}

/* The blocks that are copied come first, then everything else; each in order. */
static bool place_moves(struct blocks_copy *c, uint64_t n_whole)
{
	uint64_t copied = 0, other = n_whole * KP_SHARE_BLOCK;

	for (size_t i = 0; i < c->n_used; i++) {
		const struct range *r = &c->used[i];
		struct range whole = whole_part(*r);

		if (!add_move(c, r->begin, whole.begin, false, &other) ||
		    !add_move(c, whole.begin, whole.end, true, &copied) ||
		    !add_move(c, whole.end, r->end, false, &other))
			return false;
		for (uint64_t at = whole.begin; at < whole.end; at += KP_SHARE_BLOCK)
			c->copied.blocks[c->copied.n++] = (uint32_t)(at / KP_SHARE_BLOCK);
	}
	return true;
}

static kpack_error_t plan_moves(struct blocks_copy *c, uint64_t n_whole,
				struct kpackx_error *why)
{
	uint32_t first = c->from->first_block;

	c->copied.blocks = malloc((size_t)n_whole * sizeof(*c->copied.blocks));
	if (!c->copied.blocks || !place_moves(c, n_whole))
		return kp_fail_memory(why, c->n_moves * sizeof(*c->moves), "blocks");
	c->copied.from = c->from;
	if (first)
		c->copied.stored = kp_frame_stored(c->from, 0);
	for (uint32_t i = 0; i < c->copied.n; i++)
		c->copied.stored += kp_frame_stored(c->from, first + c->copied.blocks[i]);
	return KPACK_SUCCESS;
}

/* The move that has the byte POS, which is used. */
static const struct move *find_move(const struct blocks_copy *c, uint64_t pos)
{
	size_t low = 0, high = c->n_moves;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (c->moves[mid].from.begin <= pos)
			low = mid;
		else
			high = mid;
	}
	return &c->moves[low];
}

/* Set the extents of C to those that OBJECT has in the new archive. */
static bool move_object(struct blocks_copy *c, uint32_t object)
{
	const struct kp_shared_object *o = &c->from->objects[object];

	c->n_extents = 0;
	for (size_t i = o->first; i < o[1].first; i++) {
		uint64_t pos = c->from->extents[i].pos, part;
		uint64_t size = kp_extent_size(c->from, o, i);

		for (const struct move *m = find_move(c, pos); size; m++, size -= part) {
			part = m->from.end - pos;
			if (part > size)
				part = size;
			if (!kp_grow(&c->extents, c->n_extents, &c->extents_cap,
				     sizeof(*c->extents)))
				return false;
			c->extents[c->n_extents++] = (struct kp_share_extent){
				m->to + (pos - m->from.begin), part};
			pos += part;
		}
	}
	return true;
}

/* --- is it worth it, and allowed? -------------------------------------------------------- */

/* Other bytes that come to lie in one block may add a block to a span. */
static bool is_reachable(const struct blocks_copy *c)
{
	struct kp_reach reach;
	uint64_t at = 0;

	kp_reach_begin(&reach, KP_SHARE_BLOCK, KP_SHARED_SPAN_BLOCKS);
	for (size_t i = 0; i < c->n_extents; i++) {
		if (!kp_reach_add(&reach, at, c->extents[i].pos, c->extents[i].size))
			return false;
		at += c->extents[i].size;
	}
	return true;
}

static kpack_error_t check_objects(struct blocks_copy *c, bool *ok,
				   struct kpackx_error *why)
{
	*ok = true;
	for (uint32_t i = 0; i < c->n_objects && *ok; i++) {
		if (!move_object(c, c->objects[i]))
			return kp_fail_memory(why, c->n_extents * sizeof(*c->extents),
					      "extents");
		*ok = is_reachable(c);
	}
	return KPACK_SUCCESS;
}

/*
 * Whether the dictionary takes so much more than one that is chosen anew that compressing
 * everything again is worth it: a 32nd of the blocks.
 */
static bool is_oversized(const struct blocks_copy *c)
{
	uint64_t size = c->from->dictionary_size, stored;
	uint64_t own = (c->used_bytes + c->others) / KP_DICTIONARY_SHARE;

	if (size <= own)
		return false;
	stored = kp_frame_stored(c->from, 0);
	/* neither factor has more than 25 bits */
	return stored * (size - own) / size > (c->copied.stored - stored) / 32;
}

static kpack_error_t plan_copy(struct blocks_copy *c, bool *worth,
			       struct kpackx_error *why)
{
	uint64_t n_whole;
	bool trained;

	*worth = false;
	if (c->from->block_size != KP_SHARE_BLOCK)
		return KPACK_SUCCESS;
	KP_TRY(find_used(c, why));
	n_whole = count_whole(c);
	if (n_whole == 0 ||
	    n_whole * KP_SHARE_BLOCK < (c->used_bytes + c->others) / 4 * 3 ||
	    c->from->dictionary_size > c->used_bytes / 2)
		return KPACK_SUCCESS;
	KP_TRY(kp_shared_is_trained(c->from, &trained, why));
	if (trained)
		return KPACK_SUCCESS;
	KP_TRY(plan_moves(c, n_whole, why));
	if (is_oversized(c))
		return KPACK_SUCCESS;
	return check_objects(c, worth, why);
}

/* --- copying ----------------------------------------------------------------------------- */

/* Append the bytes of M, block by block. */
static kpack_error_t append_move(const struct blocks_copy *c, const struct move *m,
				 struct kpackx_error *why)
{
	uint32_t first = c->from->first_block;

	for (uint64_t at = m->from.begin, end; at < m->from.end; at = end) {
		uint64_t block = at / KP_SHARE_BLOCK;
		struct kp_frame *f;
		kpack_error_t err;

		end = (block + 1) * KP_SHARE_BLOCK;
		if (end > m->from.end)
			end = m->from.end;
		KP_TRY(kp_pool_get(c->from, first + (uint32_t)block, &f, why));
		err = kp_share_append(
			c->w->share,
			(struct kp_span){kp_frame_bytes(f) + at % KP_SHARE_BLOCK,
					 (size_t)(end - at)},
			c->others, why);
		kp_pool_put(f);
		if (err)
			return err;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t append_moves(const struct blocks_copy *c, bool whole,
				  struct kpackx_error *why)
{
	for (size_t i = 0; i < c->n_moves; i++)
		if (c->moves[i].whole == whole)
			KP_TRY(append_move(c, &c->moves[i], why));
	return KPACK_SUCCESS;
}

static kpack_error_t add_objects(struct blocks_copy *c, struct kpackx_error *why)
{
	KP_TRY(append_moves(c, true, why));
	KP_TRY(append_moves(c, false, why));
	for (uint32_t i = 0; i < c->n_objects; i++) {
		KP_TRY(kp_writer_place(c->w, c->from->objects[c->objects[i]].size, why));
		if (!move_object(c, c->objects[i]))
			return kp_fail_memory(why, c->n_extents * sizeof(*c->extents),
					      "extents");
		KP_TRY(kp_share_add_extents(c->w->share, c->extents, c->n_extents, why));
		c->w->n_frames++;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t copy_blocks(struct blocks_copy *c, bool *done,
				 struct kpackx_error *why)
{
	KP_TRY(plan_copy(c, done, why));
	if (!*done)
		return KPACK_SUCCESS;
	c->w->failed = add_objects(c, why);
	if (c->w->failed)
		return c->w->failed;
	c->w->copied = c->copied;
	c->copied.blocks = NULL;
	return KPACK_SUCCESS;
}

kpack_error_t kp_writer_add_blocks(struct kp_writer *w, const struct kp_shared *from,
				   const uint32_t *objects, uint32_t count,
				   uint64_t others, bool *done, struct kpackx_error *why)
{
	struct blocks_copy c = {
		.w = w,
		.from = from,
		.objects = objects,
		.n_objects = count,
		.others = others,
	};
	kpack_error_t err;

	*done = false;
	if (!w->share || w->n_frames)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "archive: has objects, or its scheme is not %s",
			       kp_scheme_name(KP_COMPRESSION_ZSTD_SHARED));
	if (w->failed)
		return kp_fail(why, w->failed, "archive: an earlier write failed");
	err = copy_blocks(&c, done, why);
	blocks_copy_fini(&c);
	return err;
}

struct kp_writer_blocks kp_writer_blocks(const struct kp_writer *w)
{
	uint64_t size = w->share ? kp_share_unique_size(w->share) : 0;

	return (struct kp_writer_blocks){
		.copied = w->copied.n,
		.stored = w->copied.stored,
		.encoded = size / KP_SHARE_BLOCK + (size % KP_SHARE_BLOCK != 0) -
			   w->copied.n,
	};
}
