/* SPDX-License-Identifier: MIT */
/*
 * Opening the bytes of a shared archive: where its frames are, and of which extents each
 * object consists.  The table of objects has, for each, the number of its extents, then for
 * each extent
 *
 *   n << 1      n unique bytes that follow those of the last such extent
 *   n << 1 | 1  n bytes that are elsewhere; then the distance from the end of the last
 *               such extent, in zigzag form
 *
 * All numbers are LEB128.
 *
 * After opening it holds: frames follow each other without gaps and fill the blob; every
 * extent has at least one byte, and all of its bytes are in the run of unique bytes; and
 * kp_reach bounds how many blocks a reader of a short part must decode.  Without that bound
 * a table of a few kilobytes could let one read decode every block of the archive.
 *
 * An object's stored size is only for people (lists, statistics).  A new byte counts for the
 * object whose extent of the first kind has it; share_leftovers gives away what no such
 * extent has.
 */
#include "shared.h"
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/lock.h"
#include "frames.h"

typedef unsigned long long ull;

/* --- the reach of a span ------------------------------------------------------------------ */

void kp_reach_begin(struct kp_reach *r, uint64_t block_size, unsigned most)
{
	r->block_size = block_size;
	r->most = most;
	r->span = UINT64_MAX;
}

/* Add SIZE bytes that are inside SPAN, and so in one block or two. */
static bool reach_blocks(struct kp_reach *r, uint64_t span, uint64_t pos, uint64_t size)
{
	uint64_t block = pos / r->block_size, last = (pos + size - 1) / r->block_size;

	if (span != r->span) {
		r->span = span;
		r->n = r->extents = 0;
	}
	for (; block <= last; block++) {
		unsigned i = r->n;

		while (i && r->blocks[i - 1] != (uint32_t)block)
			i--;
		if (i)
			continue;
		if (r->n >= r->most)
			return false;
		r->blocks[r->n++] = (uint32_t)block;
	}
	return true;
}

bool kp_reach_add(struct kp_reach *r, uint64_t at, uint64_t pos, uint64_t size)
{
	uint64_t span = at / r->block_size, left = (span + 1) * r->block_size - at, skip;

	if (!reach_blocks(r, span, pos, size < left ? size : left) ||
	    ++r->extents > KP_SHARED_SPAN_EXTENTS)
		return false;
	if (size <= left)
		return true;
	/* a span that the extent fills reaches two blocks */
	skip = left + (size - left - 1) / r->block_size * r->block_size;
	return reach_blocks(r, (at + skip) / r->block_size, pos + skip, size - skip);
}

/* --- frames ------------------------------------------------------------------------------- */

static kpack_error_t read_frames(struct kp_shared *s, const struct kp_shared_layout *l,
				 uint64_t file_size, struct kpackx_error *why)
{
	uint64_t at = l->offset, want;

	/* what decides how much memory a reader takes comes first */
	if (l->block_size < KP_SHARED_BLOCK_MIN || l->block_size > KP_SHARED_BLOCK_MAX ||
	    l->block_size & (l->block_size - 1))
		return kp_fail(
			why, KPACK_ERROR_INVALID_FORMAT,
			"zstd_shared: block_size %llu is no power of 2 from %llu to "
			"%llu",
			(ull)l->block_size, (ull)KP_SHARED_BLOCK_MIN,
			(ull)KP_SHARED_BLOCK_MAX);
	if (l->dictionary_size > KP_SHARED_DICTIONARY_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "zstd_shared: dictionary_size %llu, limit %llu",
			       (ull)l->dictionary_size, (ull)KP_SHARED_DICTIONARY_MAX);
	if (!kp_range_ok(file_size, l->offset, l->size))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "zstd_shared: %llu bytes at %llu in a file of %llu",
			       (ull)l->size, (ull)l->offset, (ull)file_size);
	if (l->objects.size > KP_SHARED_TABLE_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "zstd_shared: objects: %zu bytes, limit %llu",
			       l->objects.size, (ull)KP_SHARED_TABLE_MAX);
	/* a frame has more than 8 bytes, so their number has fewer than 32 bits */
	want = l->unique_size / l->block_size + (l->unique_size % l->block_size != 0) +
	       (l->dictionary_size != 0);
	if (l->frames.size % 4 || l->frames.size / 4 != want || want >= UINT32_MAX / 2)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "zstd_shared: frames: %zu bytes for %llu frames",
			       l->frames.size, (ull)want);
	if (l->hashes.data && l->hashes.size != 8 * (size_t)want)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "zstd_shared: %zu bytes of frame_hashes for %u frames",
			       l->hashes.size, (unsigned)want);

	s->block_size = l->block_size;
	s->unique_size = l->unique_size;
	s->dictionary_size = l->dictionary_size;
	s->first_block = l->dictionary_size != 0;
	s->n_frames = (uint32_t)want;
	KP_TRY(kp_new(&s->offsets, (size_t)want + 1, "a table of frames", why));
	if (l->hashes.data)
		KP_TRY(kp_new(&s->hashes, (size_t)want, "a table of frames", why));
	for (uint32_t i = 0; i < s->n_frames; i++) {
		uint64_t stored = kp_le32(l->frames.data + 4 * (size_t)i);
		uint64_t size = kp_frame_size(s, i);

		/* more than zstd makes of bytes that it cannot compress is no block of ours */
		if (!kp_zstd_plausible(stored, size) || stored > size + size / 128 + 1024)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "zstd_shared: frame %u has %llu bytes for %llu", i,
				       (ull)stored, (ull)size);
		s->offsets[i] = at;
		at += stored;
		if (s->hashes)
			s->hashes[i] = kp_le64(l->hashes.data + 8 * (size_t)i);
	}
	s->offsets[s->n_frames] = at;
	if (at - l->offset != l->size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "zstd_shared: frames add up to %llu bytes of %llu",
			       (ull)(at - l->offset), (ull)l->size);
	return KPACK_SUCCESS;
}

/* --- objects ------------------------------------------------------------------------------ */

/* Read a number of LEB128; false: the bytes end in it, or it has more than 63 bits. */
static bool get_number(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
	*out = 0;
	for (unsigned shift = 0; *at < end && shift < 63; shift += 7) {
		uint8_t byte = *(*at)++;

		*out |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

/* Where in the file the byte POS is stored, as far as a byte of a block has a place. */
static uint64_t stored_at(const struct kp_shared *s, uint64_t pos)
{
	uint32_t frame = (uint32_t)(pos / s->block_size) + s->first_block;

	if (frame == s->n_frames)
		return s->offsets[frame];
	return s->offsets[frame] + (pos % s->block_size) * kp_frame_stored(s, frame) /
					   kp_frame_size(s, frame);
}

/*
 * The unique bytes FROM on are of no extent of the first kind, as in archives whose blocks
 * were copied from another one: so much of each block as an object has of it is its part,
 * until all of the block is given away.
 */
static kpack_error_t share_leftovers(struct kp_shared *s, uint64_t from,
				     struct kpackx_error *why)
{
	struct kp_shared_object *o = s->objects;
	uint32_t n = s->n_frames - s->first_block;
	KP_AUTO_FREE uint64_t *left = NULL; /* bytes of each block that nobody has */
	/* of each block without such bytes, a later one from which to look for one with some */
	KP_AUTO_FREE uint32_t *next = NULL;

	if (from == s->unique_size)
		return KPACK_SUCCESS;
	KP_TRY(kp_new(&left, n, "blocks", why));
	KP_TRY(kp_new(&next, n, "blocks", why));
	for (uint32_t b = 0; b < n; b++) {
		uint64_t begin = b * s->block_size;
		uint64_t size = kp_frame_size(s, b + s->first_block);

		next[b] = b + 1;
		left[b] = begin >= from         ? size
			  : begin + size > from ? begin + size - from
						: 0;
	}
	for (size_t i = 0; i < s->n_extents; i++) {
		uint64_t pos = s->extents[i].pos, end;

		while (i >= o[1].first)
			o++;
		end = pos + kp_extent_size(s, o, i);
		if (end <= from)
			continue;
		pos = pos < from ? from : pos;
		for (uint32_t b = (uint32_t)(pos / s->block_size);; b++) {
			uint64_t begin, until, stored, size, had;
			uint32_t found = b, after;

			while (found < n && !left[found])
				found = next[found];
			for (; b < found; b = after) {
				after = next[b];
				next[b] = found;
			}
			if (b > (end - 1) / s->block_size)
				break;
			begin = b * s->block_size;
			stored = kp_frame_stored(s, b + s->first_block);
			size = kp_frame_size(s, b + s->first_block);
			until = begin + size < end ? begin + size : end;
			begin = begin < pos ? pos : begin;
			had = left[b];
			left[b] -= until - begin < had ? until - begin : had;
			o->stored += had * stored / size - left[b] * stored / size;
		}
	}
	return KPACK_SUCCESS;
}

/* Parse the table of objects (see above), and find the bytes that each takes. */
static kpack_error_t read_objects(struct kp_shared *s, struct kp_span bytes,
				  struct kpackx_error *why)
{
	const uint8_t *at = bytes.data, *end = kp_span_tail(bytes, bytes.size).data;
	uint64_t next_unique = 0, next_elsewhere = 0, n, head, distance;
	size_t objects_cap = 0, extents_cap = 0;
	const char *fault = NULL;
	struct kp_reach reach;

	KP_TRY(kp_room(&s->objects, 0, &objects_cap, "objects", why));
	for (; at < end; s->n_objects++) {
		struct kp_shared_object *o;

		/* one more: the sentinel */
		KP_TRY(kp_room(&s->objects, (size_t)s->n_objects + 1, &objects_cap,
			       "objects", why));
		o = &s->objects[s->n_objects];
		*o = (struct kp_shared_object){.first = s->n_extents};
		if (s->n_objects == KP_SHARED_OBJECTS_MAX)
			fault = "too many objects";
		else if (!get_number(&at, end, &n))
			fault = "a number has no end";
		else if (n > (size_t)(end - at))
			fault = "more extents than bytes can hold";
		kp_reach_begin(&reach, s->block_size, KP_SHARED_SPAN_BLOCKS);
		for (; !fault && n; n--) {
			uint64_t pos, size;
			bool is_new;

			distance = 0;
			if (!get_number(&at, end, &head) ||
			    (head & 1 && !get_number(&at, end, &distance))) {
				fault = "a number has no end";
				break;
			}
			size = head >> 1;
			is_new = !(head & 1);
			/* 63 bits at most: a sum that is outside wraps to one that is, too */
			pos = is_new ? next_unique
				     : next_elsewhere +
					       ((distance >> 1) ^ (0 - (distance & 1)));
			if (!size || !kp_range_ok(s->unique_size, pos, size))
				fault = "an extent is empty, or outside the unique bytes";
			else if (size > KP_OBJECT_MAX - o->size)
				fault = "an object is too large";
			else if (!kp_reach_add(&reach, o->size, pos, size))
				fault = "a span is in more than 16 blocks, or more than "
					"4096 extents begin in it";
			if (fault)
				break;
			*(is_new ? &next_unique : &next_elsewhere) = pos + size;
			KP_TRY(kp_room(&s->extents, s->n_extents, &extents_cap, "objects",
				       why));
			s->extents[s->n_extents++] = (struct kp_extent){o->size, pos};
			o->size += size;
			if (is_new)
				o->stored += stored_at(s, pos + size) - stored_at(s, pos);
		}
		if (fault)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "zstd_shared: objects: object %u, before byte "
				       "%zu: %s",
				       s->n_objects, (size_t)(at - bytes.data), fault);
	}
	s->objects[s->n_objects] = (struct kp_shared_object){.first = s->n_extents};
	return share_leftovers(s, next_unique, why);
}

/* --- opening ------------------------------------------------------------------------------ */

kpack_error_t kp_shared_open(int fd, uint64_t file_size,
			     const struct kp_shared_layout *layout,
			     struct kp_shared **out, struct kpackx_error *why)
{
	struct kp_shared *s;
	kpack_error_t err;

	KP_TRY(kp_locks_check(why));
	KP_TRY(kp_new(&s, 1, "blocks", why));
	s->fd = fd;
	err = read_frames(s, layout, file_size, why);
	if (!err)
		err = read_objects(s, layout->objects, why);
	if (err)
		kp_shared_close(s);
	else
		*out = s;
	return err;
}

void kp_shared_close(struct kp_shared *s)
{
	if (!s)
		return;
	kp_pool_forget(s);
	free(s->offsets);
	free(s->hashes);
	free(s->objects);
	free(s->extents);
	free(s);
}
