/* SPDX-License-Identifier: MIT */
#include "share.h"
#include <stdlib.h>
#include "anchors.h"
#include "core/base/alloc.h"
#include "core/base/hash.h"
#include "core/archive/shared.h"
#include "rolling.h"
#include "warm.h"

/* Bytes that are looked up. */
enum { WINDOW = 512 };

/*
 * The least bytes that become an extent, as an extent takes some bytes itself: in warm
 * blocks; if the extent directly follows another one; and in other blocks, which a reader
 * may have to decode again for it.  Shorter matches there are stored once more, so that
 * objects that follow find them in a warm block.
 */
enum { WARM_MIN = 1024, NEXT_MIN = 512, COLD_MIN = 4096 };

/* A place is looked up if these bits of the hash are zero: one in 512. */
enum { ANCHOR_SHIFT = 64 - 9 };

/* Bytes to compare at once. */
enum { COMPARE = 4096 };

/*
 * Once a run of new bytes is so long, most of it becomes unique, so that it can be found
 * again; the rest may still turn out to begin a match.
 */
static const size_t RUN_MAX = 256 << 10, RUN_KEPT = 16 << 10;

/* Leave two blocks of each span to new bytes, and some extents. */
enum { MATCH_BLOCKS = KP_SHARED_SPAN_BLOCKS - 2, MATCH_EXTENTS = 4000 };

struct extent {
	uint64_t pos, size;
	bool is_new; /* its bytes are unique ones that no extent before it has */
};

struct object {
	size_t first; /* its extents are [first, next object's first) */
};

/* A place in the object that is added, to be noted once its bytes are unique ones. */
struct place {
	uint64_t hash;
	size_t end;
};

struct kp_share {
	struct kp_unique unique;
	struct kp_anchors anchors;
	struct kp_warm warm;
	uint64_t size; /* of all objects */
	struct object *objects;
	uint32_t n_objects;
	size_t objects_cap;
	struct extent *extents;
	size_t n_extents, extents_cap;
	struct place *places;
	size_t n_places, places_cap;
	uint8_t buf[COMPARE];
};

/* The object that is added. */
struct adding {
	struct kp_share *s;
	struct kpackx_error *why;
	const uint8_t *data;
	size_t size;
	size_t run;  /* where the new bytes begin, after the last match */
	size_t done; /* bytes that are in extents */
	struct kp_reach reach;
};

kpack_error_t kp_share_new(int dir, struct kp_share **out, struct kpackx_error *why)
{
	struct kp_share *s = calloc(1, sizeof(*s));
	kpack_error_t err;

	if (!s)
		return kp_fail_memory(why, sizeof(*s), "objects");
	err = kp_unique_init(&s->unique, dir, why);
	if (err)
		kp_share_free(s);
	else
		*out = s;
	return err;
}

void kp_share_free(struct kp_share *s)
{
	if (!s)
		return;
	kp_unique_fini(&s->unique);
	kp_anchors_fini(&s->anchors);
	free(s->objects);
	free(s->extents);
	free(s->places);
	free(s);
}

/* --- extents ------------------------------------------------------------------------ */

/* Append an extent of the object, or lengthen its last one. */
static kpack_error_t push_extent(struct kp_share *s, uint64_t pos, uint64_t size,
				 bool is_new, struct kpackx_error *why)
{
	struct extent *last = s->n_extents > s->objects[s->n_objects].first
				      ? &s->extents[s->n_extents - 1]
				      : NULL;

	kp_warm_use(&s->warm, pos, size);
	s->size += size;
	if (last && last->is_new == is_new && last->pos + last->size == pos) {
		last->size += size;
		return KPACK_SUCCESS;
	}
	if (!kp_grow(&s->extents, s->n_extents, &s->extents_cap, sizeof(*s->extents)))
		return kp_fail_memory(why, s->n_extents, "extents");
	s->extents[s->n_extents++] = (struct extent){pos, size, is_new};
	return KPACK_SUCCESS;
}

/* Note the places whose bytes have become unique ones: those before END of the object. */
static kpack_error_t note_places(struct adding *a, size_t end)
{
	struct kp_share *s = a->s;
	uint64_t run_pos = s->unique.size - (end - a->run);
	size_t i;

	for (i = 0; i < s->n_places && s->places[i].end <= end; i++)
		if (!kp_anchors_put(&s->anchors, s->places[i].hash,
				    run_pos + (s->places[i].end - a->run)))
			return kp_fail_memory(a->why, s->anchors.size, "anchors");
	s->n_places -= i;
	if (i && s->n_places)
		memmove(s->places, s->places + i, s->n_places * sizeof(*s->places));
	return KPACK_SUCCESS;
}

/* Make the bytes from DONE to END unique ones. */
static kpack_error_t take_new(struct adding *a, size_t end)
{
	uint64_t pos = a->s->unique.size;
	size_t n = end - a->done;

	if (!n)
		return KPACK_SUCCESS;
	a->reach.most = KP_SHARED_SPAN_BLOCKS;
	if (!kp_reach_add(&a->reach, a->done, pos, n))
		return kp_fail(a->why, KPACK_ERROR_INVALID_ARGUMENT,
			       "an object has too many extents");
	KP_TRY(push_extent(a->s, pos, n, true, a->why));
	KP_TRY(kp_unique_append(&a->s->unique, a->data + a->done, n, a->why));
	a->done = end;
	return note_places(a, end);
}

/* --- matches ------------------------------------------------------------------------ */

/* Bytes of the object that are unique ones, too. */
struct match {
	size_t at, size;
	uint64_t pos;
};

static size_t least_of(size_t a, uint64_t b)
{
	return a < b ? a : (size_t)b;
}

/* Lengthen M to the left, as far as the bytes are equal. */
static kpack_error_t extend_left(struct adding *a, struct match *m)
{
	const uint8_t *buf = a->s->buf;
	size_t n, i;

	do {
		n = least_of(least_of(COMPARE, m->at - a->done), m->pos);
		KP_TRY(kp_unique_read(&a->s->unique, m->pos - n, a->s->buf, n, a->why));
		for (i = 0; i < n && buf[n - 1 - i] == a->data[m->at - 1 - i];)
			i++;
		m->at -= i;
		m->pos -= i;
		m->size += i;
	} while (n && i == n);
	return KPACK_SUCCESS;
}

/* The same to the right, as far as END of the object. */
static kpack_error_t extend_right(struct adding *a, struct match *m, size_t end)
{
	const uint8_t *buf = a->s->buf;
	size_t n, i;

	do {
		const uint8_t *data = a->data + m->at + m->size;
		uint64_t pos = m->pos + m->size;

		n = least_of(least_of(COMPARE, end - m->at - m->size),
			     a->s->unique.size - pos);
		KP_TRY(kp_unique_read(&a->s->unique, pos, a->s->buf, n, a->why));
		for (i = 0; i < n && buf[i] == data[i];)
			i++;
		m->size += i;
	} while (n && i == n);
	return KPACK_SUCCESS;
}

/* Whether the reader of a span meets few enough extents and blocks with M. */
static bool is_reachable(const struct adding *a, const struct match *m)
{
	struct kp_reach reach = a->reach;

	reach.most = KP_SHARED_SPAN_BLOCKS;
	if (m->at > a->done &&
	    !kp_reach_add(&reach, a->done, a->s->unique.size, m->at - a->done))
		return false;
	reach.most = MATCH_BLOCKS;
	return kp_reach_add(&reach, m->at, m->pos, m->size) &&
	       reach.extents < MATCH_EXTENTS;
}

static kpack_error_t take_match(struct adding *a, const struct match *m)
{
	KP_TRY(take_new(a, m->at));
	a->reach.most = KP_SHARED_SPAN_BLOCKS;
	kp_reach_add(&a->reach, m->at, m->pos, m->size);
	KP_TRY(push_extent(a->s, m->pos, m->size, false, a->why));
	a->run = a->done = m->at + m->size;
	a->s->n_places = 0;
	return KPACK_SUCCESS;
}

/*
 * The end of the part of M that decides whether it is taken: once it is long enough, only
 * the span in which it begins can reach too much.
 */
static size_t deciding_end(const struct adding *a, const struct match *m)
{
	size_t span = KP_SHARE_BLOCK - m->at % KP_SHARE_BLOCK;
	size_t n = span > COLD_MIN ? span : COLD_MIN;

	if (n < m->size)
		n = m->size;
	return n < a->size - m->at ? m->at + n : a->size;
}

static bool is_long_enough(const struct adding *a, const struct match *m)
{
	if (m->size >= COLD_MIN)
		return true;
	return m->size >= (m->at == a->run ? NEXT_MIN : WARM_MIN) &&
	       kp_warm_has(&a->s->warm, m->pos, m->size);
}

/* Look for a match around the bytes before END; *TAKEN: there is one, and it was taken. */
static kpack_error_t try_place(struct adding *a, size_t end, uint64_t hash, bool *taken)
{
	struct match m = {.at = end};

	*taken = false;
	if (!kp_anchors_find(&a->s->anchors, hash, &m.pos))
		return KPACK_SUCCESS;
	KP_TRY(extend_left(a, &m));
	if (m.size < WINDOW || !is_reachable(a, &m))
		return KPACK_SUCCESS;
	KP_TRY(extend_right(a, &m, deciding_end(a, &m)));
	*taken = is_long_enough(a, &m) && is_reachable(a, &m);
	if (!*taken)
		return KPACK_SUCCESS;
	KP_TRY(extend_right(a, &m, a->size));
	return take_match(a, &m);
}

/* --- objects ------------------------------------------------------------------------ */

/* Look at the place before END, which is an anchor. */
static kpack_error_t visit_place(struct adding *a, size_t end, bool *taken)
{
	struct kp_share *s = a->s;
	uint64_t hash;

	*taken = false;
	if (end - a->run < WINDOW)
		return KPACK_SUCCESS;
	hash = kp_hash64(a->data + end - WINDOW, WINDOW, 0);
	KP_TRY(try_place(a, end, hash, taken));
	if (*taken)
		return KPACK_SUCCESS;
	if (!kp_grow(&s->places, s->n_places, &s->places_cap, sizeof(*s->places)))
		return kp_fail_memory(a->why, s->n_places, "places");
	s->places[s->n_places++] = (struct place){hash, end};
	return end - a->done > RUN_MAX ? take_new(a, end - RUN_KEPT) : KPACK_SUCCESS;
}

static kpack_error_t scan_object(struct adding *a)
{
	const uint8_t *data = a->data;
	uint64_t hash = 0;
	bool taken;

	for (size_t i = 0; i < a->size; i++) {
		hash = kp_rolling_add(hash, data[i]);
		if (hash >> ANCHOR_SHIFT)
			continue;
		KP_TRY(visit_place(a, i + 1, &taken));
		if (taken) {
			i = a->done - 1;
			hash = 0;
		}
	}
	return take_new(a, a->size);
}

static kpack_error_t begin_object(struct kp_share *s, struct kpackx_error *why)
{
	if (!kp_grow(&s->objects, (size_t)s->n_objects + 1, &s->objects_cap,
		     sizeof(*s->objects)))
		return kp_fail_memory(why, s->n_objects, "objects");
	s->objects[s->n_objects].first = s->n_extents;
	return KPACK_SUCCESS;
}

kpack_error_t kp_share_add(struct kp_share *s, struct kp_span data,
			   struct kpackx_error *why)
{
	struct adding a = {.s = s, .why = why, .data = data.data, .size = data.size};

	KP_TRY(begin_object(s, why));
	s->n_places = 0;
	kp_reach_begin(&a.reach, KP_SHARE_BLOCK, KP_SHARED_SPAN_BLOCKS);
	KP_TRY(scan_object(&a));
	s->objects[++s->n_objects].first = s->n_extents;
	return KPACK_SUCCESS;
}

kpack_error_t kp_share_add_extents(struct kp_share *s,
				   const struct kp_share_extent *extents, size_t n,
				   struct kpackx_error *why)
{
	KP_TRY(begin_object(s, why));
	for (size_t i = 0; i < n; i++)
		KP_TRY(push_extent(s, extents[i].pos, extents[i].size, false, why));
	s->objects[++s->n_objects].first = s->n_extents;
	return KPACK_SUCCESS;
}

kpack_error_t kp_share_append(struct kp_share *s, struct kp_span data, bool searched,
			      struct kpackx_error *why)
{
	uint64_t pos = s->unique.size, hash = 0;

	KP_TRY(kp_unique_append(&s->unique, data.data, data.size, why));
	for (size_t i = 0; searched && i < data.size; i++) {
		hash = kp_rolling_add(hash, data.data[i]);
		if (hash >> ANCHOR_SHIFT || i + 1 < WINDOW)
			continue;
		if (!kp_anchors_put(&s->anchors,
				    kp_hash64(data.data + i + 1 - WINDOW, WINDOW, 0),
				    pos + i + 1))
			return kp_fail_memory(why, s->anchors.size, "anchors");
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_share_read(const struct kp_share *s, uint32_t object, uint8_t *buf,
			    struct kpackx_error *why)
{
	for (size_t i = s->objects[object].first; i < s->objects[object + 1].first; i++) {
		const struct extent *e = &s->extents[i];

		KP_TRY(kp_unique_read(&s->unique, e->pos, buf, (size_t)e->size, why));
		buf += e->size;
	}
	return KPACK_SUCCESS;
}

uint64_t kp_share_size(const struct kp_share *s)
{
	return s->size;
}

uint64_t kp_share_unique_size(const struct kp_share *s)
{
	return s->unique.size;
}

kpack_error_t kp_share_flush(struct kp_share *s, const struct kp_unique **out,
			     struct kpackx_error *why)
{
	*out = &s->unique;
	return kp_unique_flush(&s->unique, why);
}

/* --- the table ---------------------------------------------------------------------- */

/* Most bytes of a number, and of an extent. */
enum { NUMBER_MAX = 10, EXTENT_MAX = 2 * NUMBER_MAX };

static uint8_t *put_number(uint8_t *to, uint64_t n)
{
	for (; n >= 0x80; n >>= 7)
		*to++ = (uint8_t)(n | 0x80);
	*to++ = (uint8_t)n;
	return to;
}

/* Where the next extent of each kind begins, unless a distance says otherwise. */
struct ends {
	uint64_t unique, elsewhere;
};

static uint8_t *put_extent(uint8_t *to, const struct extent *e, struct ends *ends)
{
	bool follows = e->pos == ends->unique;
	uint64_t *end = follows ? &ends->unique : &ends->elsewhere;
	uint64_t distance = e->pos - *end;

	*end = e->pos + e->size;
	to = put_number(to, e->size << 1 | !follows);
	return follows ? to : put_number(to, distance << 1 ^ (0 - (distance >> 63)));
}

uint64_t kp_share_objects_bound(const struct kp_share *s)
{
	return (uint64_t)s->n_objects * NUMBER_MAX + (uint64_t)s->n_extents * EXTENT_MAX;
}

kpack_error_t kp_share_objects(const struct kp_share *s, uint8_t **out, size_t *size,
			       struct kpackx_error *why)
{
	struct ends ends = {0};
	uint8_t *to;

	*out = to = malloc((size_t)kp_share_objects_bound(s) + 1);
	if (!to)
		return kp_fail_memory(why, kp_share_objects_bound(s), "extents");
	for (uint32_t i = 0; i < s->n_objects; i++) {
		size_t first = s->objects[i].first, end = s->objects[i + 1].first;

		to = put_number(to, end - first);
		for (size_t k = first; k < end; k++)
			to = put_extent(to, &s->extents[k], &ends);
	}
	*size = (size_t)(to - *out);
	return KPACK_SUCCESS;
}
