/* SPDX-License-Identifier: MIT */
/*
 * Copying objects of another archive as they are stored there: runs of frames or plain bytes,
 * and blocks of a shared archive.
 *
 * Blocks are copied in these steps:
 *
 *   plan_copy     the bytes of the other archive's run that the wanted objects have, and whether
 *                 copying is allowed and worth it; until here nothing is written
 *   plan_moves    for that: which of them are whole blocks, which are copied and come first, and
 *                 where all others come to lie behind them
 *   add_objects   the bytes are appended, whole blocks first, and the objects' extents moved
 *
 * Only whole blocks can stay as they are: of another one some bytes are not wanted, and a frame
 * cannot be cut.
 */
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "internal.h"

/* --- runs of objects ------------------------------------------------------------------- */

static kpack_error_t copy_run(struct kp_writer *w, const struct kpack_archive *from,
			      uint32_t first, uint32_t count, struct kpackx_error *why)
{
	uint64_t word = w->scheme == KPACK_COMPRESSION_NOOP ? 0 : 4;
	uint64_t file_size = (uint64_t)kp_archive_stat(from)->st_size;
	/* contiguous bytes that are to be appended */
	struct kp_source run = kp_source_fd(kp_archive_fd(from), 0, 0);
	kpack_error_t err;

	for (uint32_t i = first; i < first + count; i++) {
		struct kp_source at;

		KP_TRY(kp_archive_source(from, i, &at, why));
		if (!kp_range_ok(file_size, at.offset, at.size))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "object %u: %llu bytes at %llu in a file of %llu",
				       i, (unsigned long long)at.size,
				       (unsigned long long)at.offset,
				       (unsigned long long)file_size);
		if (run.size && run.offset + run.size != at.offset - word) {
			KP_TRY(kp_writer_append_source(w, &run, why));
			run.size = 0;
		}
		if (run.size == 0)
			run.offset = at.offset - word;
		/* its place is where it will be once those bytes are appended */
		w->end += run.size;
		err = kp_writer_place(w, at.size, why);
		w->end -= run.size;
		if (err)
			return err;
		run.size += word + at.size;
		KP_TRY(kp_writer_hash(w, &at, why));
		w->n_frames++;
	}
	return kp_writer_append_source(w, &run, why);
}

kpack_error_t kp_writer_add_run(struct kp_writer *w, const struct kpack_archive *from,
				uint32_t first, uint32_t count, uint32_t *ordinal,
				struct kpackx_error *why)
{
	if (w->share || strcmp(kp_archive_scheme(from), kp_scheme_name(w->scheme)) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "archive: its scheme is not %s", kp_archive_scheme(from));
	if (!kp_range_ok(kp_archive_ordinal_count(from), first, count))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "archive: from ordinal %u on %u objects, of %u", first,
			       count, kp_archive_ordinal_count(from));
	*ordinal = w->n_frames;
	KP_TRY(kp_writer_check(w, why));
	w->failed = copy_run(w, from, first, count, why);
	return w->failed;
}

/* --- blocks of a shared archive ------------------------------------------------------------ */

/* Bytes of the other archive's run of unique bytes. */
struct range {
	uint64_t begin, end;
	/* where they are in the new archive; WHOLE: they are whole blocks, which are copied */
	uint64_t to;
	bool whole;
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
	struct range *moves; /* the same, cut into those that are copied and others */
	size_t n_moves, moves_cap;
	struct kp_copied copied;
	struct kp_share_extent *extents; /* of one object */
	size_t n_extents, extents_cap;
};

/* The bytes of R that are whole blocks; none: an empty range at its end. */
static struct range whole_part(const struct range *r)
{
	uint64_t begin = r->begin / KP_SHARE_BLOCK + (r->begin % KP_SHARE_BLOCK != 0);
	uint64_t end = r->end / KP_SHARE_BLOCK;

	if (begin >= end)
		return (struct range){.begin = r->end, .end = r->end};
	return (struct range){.begin = begin * KP_SHARE_BLOCK,
			      .end = end * KP_SHARE_BLOCK};
}

/* The N_WHOLE blocks that are copied come first, then everything else; each in order. */
static kpack_error_t plan_moves(struct blocks_copy *c, uint64_t n_whole,
				struct kpackx_error *why)
{
	/* where the next bytes of either kind come to lie */
	uint64_t copied = 0, other = n_whole * KP_SHARE_BLOCK;
	uint32_t first = c->from->first_block;

	c->copied.from = c->from;
	c->copied.stored = first ? kp_frame_stored(c->from, 0) : 0;
	KP_TRY(kp_new(&c->copied.blocks, (size_t)n_whole, "blocks", why));
	for (size_t i = 0; i < c->n_used; i++) {
		const struct range *r = &c->used[i];
		const struct range whole = whole_part(r);
		const struct range parts[] = {
			{r->begin, whole.begin, other, false},
			{whole.begin, whole.end, copied, true},
			{whole.end, r->end, other + (whole.begin - r->begin), false},
		};

		for (size_t k = 0; k < KP_COUNT(parts); k++) {
			if (parts[k].begin == parts[k].end)
				continue;
			KP_TRY(kp_room(&c->moves, c->n_moves, &c->moves_cap, "blocks",
				       why));
			c->moves[c->n_moves++] = parts[k];
		}
		copied += whole.end - whole.begin;
		other += r->end - r->begin - (whole.end - whole.begin);
		for (uint64_t at = whole.begin; at < whole.end; at += KP_SHARE_BLOCK) {
			uint32_t block = (uint32_t)(at / KP_SHARE_BLOCK);

			c->copied.blocks[c->copied.n++] = block;
			c->copied.stored += kp_frame_stored(c->from, first + block);
		}
	}
	return KPACK_SUCCESS;
}

/* Set the extents of C to those that OBJECT has in the new archive. */
static kpack_error_t move_object(struct blocks_copy *c, uint32_t object,
				 struct kpackx_error *why)
{
	const struct kp_shared_object *o = &c->from->objects[object];

	c->n_extents = 0;
	for (size_t i = o->first; i < o[1].first; i++) {
		uint64_t pos = c->from->extents[i].pos, part;
		uint64_t size = kp_extent_size(c->from, o, i);
		const struct range after = {.begin = pos + 1};
		/* the move that has the extent's first byte */
		const struct range *m =
			&c->moves[kp_lower_bound(c->moves, c->n_moves, &after,
						 KP_BY_NUMBER(struct range, begin)) -
				  1];

		for (; size; m++, size -= part, pos += part) {
			part = m->end - pos < size ? m->end - pos : size;
			KP_TRY(kp_room(&c->extents, c->n_extents, &c->extents_cap,
				       "extents", why));
			c->extents[c->n_extents++] = (struct kp_share_extent){
				.pos = m->to + (pos - m->begin), .size = part};
		}
	}
	return KPACK_SUCCESS;
}

/* Whether it is allowed, and worth it, to copy blocks. */
static kpack_error_t plan_copy(struct blocks_copy *c, bool *worth,
			       struct kpackx_error *why)
{
	uint64_t n_whole = 0, size = c->from->dictionary_size, own, stored;
	struct kp_reach reach;
	size_t n = 0;
	bool trained;

	*worth = false;
	if (c->from->block_size != KP_SHARE_BLOCK)
		return KPACK_SUCCESS;
	/* the extents of all objects, sorted; then what overlaps or touches is one range */
	for (uint32_t i = 0; i < c->n_objects; i++) {
		const struct kp_shared_object *o = &c->from->objects[c->objects[i]];

		for (size_t k = o->first; k < o[1].first; k++) {
			uint64_t pos = c->from->extents[k].pos;

			KP_TRY(kp_room(&c->used, c->n_used, &c->used_cap, "extents",
				       why));
			c->used[c->n_used++] = (struct range){
				.begin = pos, .end = pos + kp_extent_size(c->from, o, k)};
		}
	}
	kp_sort(c->used, c->n_used, KP_BY_NUMBER(struct range, begin));
	for (size_t i = 0; i < c->n_used; i++) {
		const struct range *r = &c->used[i];

		if (!n || r->begin > c->used[n - 1].end)
			c->used[n++] = *r;
		else if (r->end > c->used[n - 1].end)
			c->used[n - 1].end = r->end;
	}
	c->n_used = n;
	for (size_t i = 0; i < n; i++) {
		struct range whole = whole_part(&c->used[i]);

		c->used_bytes += c->used[i].end - c->used[i].begin;
		n_whole += (whole.end - whole.begin) / KP_SHARE_BLOCK;
	}
	if (n_whole == 0 ||
	    n_whole * KP_SHARE_BLOCK < (c->used_bytes + c->others) / 4 * 3 ||
	    size > c->used_bytes / 2)
		return KPACK_SUCCESS;
	KP_TRY(kp_shared_is_trained(c->from, &trained, why));
	if (trained)
		return KPACK_SUCCESS;
	KP_TRY(plan_moves(c, n_whole, why));
	/*
	 * The dictionary may take so much more than one that is chosen anew that compressing
	 * everything again is worth it: a 32nd of the blocks.
	 */
	own = (c->used_bytes + c->others) / KP_DICTIONARY_SHARE;
	if (size > own) {
		stored = kp_frame_stored(c->from, 0);
		/* neither factor has more than 25 bits */
		if (stored * (size - own) / size > (c->copied.stored - stored) / 32)
			return KPACK_SUCCESS;
	}
	/* other bytes that come to lie in one block may add a block to a span */
	for (uint32_t i = 0; i < c->n_objects; i++) {
		uint64_t at = 0;

		KP_TRY(move_object(c, c->objects[i], why));
		kp_reach_begin(&reach, KP_SHARE_BLOCK, KP_SHARED_SPAN_BLOCKS);
		for (size_t k = 0; k < c->n_extents; at += c->extents[k++].size)
			if (!kp_reach_add(&reach, at, c->extents[k].pos,
					  c->extents[k].size))
				return KPACK_SUCCESS;
	}
	*worth = true;
	return KPACK_SUCCESS;
}

static kpack_error_t add_objects(struct blocks_copy *c, struct kpackx_error *why)
{
	for (size_t i = 0; i < 2 * c->n_moves; i++) {
		const struct range *m = &c->moves[i % c->n_moves];

		/* whole blocks first, then all others, block by block */
		if (m->whole != (i < c->n_moves))
			continue;
		for (uint64_t at = m->begin, end; at < m->end; at = end) {
			uint64_t block = at / KP_SHARE_BLOCK;
			struct kp_span data;
			struct kp_frame *f;
			kpack_error_t err;

			end = (block + 1) * KP_SHARE_BLOCK;
			end = end < m->end ? end : m->end;
			KP_TRY(kp_pool_get(c->from,
					   c->from->first_block + (uint32_t)block, &f,
					   why));
			data = (struct kp_span){kp_frame_bytes(f) + at % KP_SHARE_BLOCK,
						(size_t)(end - at)};
			err = kp_share_append(c->w->share, data, c->others, why);
			kp_pool_put(f);
			KP_TRY(err);
		}
	}
	for (uint32_t i = 0; i < c->n_objects; i++) {
		KP_TRY(kp_writer_place(c->w, c->from->objects[c->objects[i]].size, why));
		KP_TRY(move_object(c, c->objects[i], why));
		KP_TRY(kp_share_add_extents(c->w->share, c->extents, c->n_extents, why));
		c->w->n_frames++;
	}
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
	KP_TRY(kp_writer_check(w, why));
	err = plan_copy(&c, done, why);
	if (!err && *done) {
		err = w->failed = add_objects(&c, why);
		w->copied = c.copied;
		c.copied.blocks = NULL;
	}
	free(c.used);
	free(c.moves);
	free(c.copied.blocks);
	free(c.extents);
	return err;
}
