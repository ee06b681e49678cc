/* SPDX-License-Identifier: MIT */
/*
 * Where the hash of the last 64 bytes has a certain value, on average every 512 bytes, is an
 * anchor.  The WINDOW bytes before an anchor of the object that is added are looked up among
 * the unique bytes so far; what is equal around them becomes an extent, if it is long enough
 * to be worth it.  Bytes that are found nowhere become unique ones, and their anchors are
 * noted.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/hash.h"
#include "internal.h"

/* Bytes that are looked up. */
enum { WINDOW = 512 };

/*
 * The least bytes that become an extent, as an extent takes some bytes itself: in warm
 * blocks; if the extent directly follows another one; and in other blocks, which a reader
 * may have to decode again for it.  Shorter matches there are stored once more, so that
 * objects that follow find them in a warm block.
 */
enum { WARM_MIN = 1024, NEXT_MIN = 512, COLD_MIN = 4096 };

/* A place is an anchor if these bits of the hash are zero: one in 512. */
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

/*
 * Blocks that a reader of all objects in order, as kp_pool_get keeps them, still has decoded:
 * fewer than the pool has room for beside a dictionary, as there may be other readers.
 */
enum { WARM_BLOCKS = 40 };

struct share_finder {
	/*
	 * Where content was seen: places in the run of unique bytes by the hash of the bytes
	 * before them.  Bounded memory: when it is used up, new places replace old ones.
	 */
	struct anchor {
		uint64_t hash; /* 0: free */
		uint64_t pos;
	} * slots;
	size_t n_slots, used;       /* N_SLOTS is a power of two, or 0 */
	uint64_t warm[WARM_BLOCKS]; /* the block that was used last first */
	unsigned n_warm;
	/* anchors of the object that is added, to be noted once their bytes are unique ones */
	struct place {
		uint64_t hash;
		size_t end;
	} * places;
	size_t n_places, places_cap;
	uint8_t buf[COMPARE];
};

uint64_t kp_rolling_table[256];

/* The first numbers of splitmix64 with the seed 0. */
static void fill_rolling_table(void)
{
	uint64_t state = 0;

	for (size_t i = 0; i < 256; i++) {
		uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

		z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
		kp_rolling_table[i] = z ^ z >> 31;
	}
}

/* --- unique bytes ----------------------------------------------------------------------- */

static const size_t TAIL = 1 << 20;

kpack_error_t kp_share_flush(struct kp_share *s, struct kpackx_error *why)
{
	struct kp_unique *u = &s->unique;

	if (u->size > u->tail_at)
		KP_TRY(kp_outfile_pwrite(&u->file, u->tail_at, u->tail,
					 (size_t)(u->size - u->tail_at), why));
	u->tail_at = u->size;
	return KPACK_SUCCESS;
}

static kpack_error_t append_unique(struct kp_share *s, const uint8_t *data, size_t size,
				   struct kpackx_error *why)
{
	struct kp_unique *u = &s->unique;

	while (size) {
		size_t used = (size_t)(u->size - u->tail_at), n = TAIL - used;

		n = n < size ? n : size;
		memcpy(u->tail + used, data, n);
		u->size += n;
		data += n;
		size -= n;
		if (used + n == TAIL)
			KP_TRY(kp_share_flush(s, why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_unique_read(const struct kp_unique *u, uint64_t pos, uint8_t *buf,
			     size_t size, struct kpackx_error *why)
{
	size_t n = 0; /* bytes in the file */

	if (pos < u->tail_at)
		n = size < u->tail_at - pos ? size : (size_t)(u->tail_at - pos);
	if (n)
		KP_TRY(kp_file_pread(u->file.fd, pos, buf, n, why));
	if (n < size)
		memcpy(buf + n, u->tail + (pos + n - u->tail_at), size - n);
	return KPACK_SUCCESS;
}

kpack_error_t kp_share_new(int dir, struct kp_share **out, struct kpackx_error *why)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char name[KP_TEMP_NAME_SIZE];
	struct kp_share *s;
	kpack_error_t err;
	int fd;

	pthread_once(&once, fill_rolling_table);
	KP_TRY(kp_new(&s, 1, "objects", why));
	s->unique.file.fd = s->unique.file.dir_fd = -1;
	err = kp_new(&s->finder, 1, "objects", why);
	s->unique.tail = malloc(TAIL);
	if (!err && !s->unique.tail)
		err = kp_fail_memory(why, TAIL, "unique bytes");
	if (!err && !kp_temp_name(name))
		err = kp_fail_errno(why, errno, "a temporary name");
	if (!err && (fd = fcntl(dir, F_DUPFD_CLOEXEC, 0)) < 0)
		err = kp_fail_errno(why, errno, "the archive's directory");
	if (!err)
		err = kp_outfile_open_at(&s->unique.file, fd, name, 0600, why);
	if (err) {
		kp_share_free(s);
		return err;
	}
	kp_outfile_unname(&s->unique.file);
	*out = s;
	return KPACK_SUCCESS;
}

void kp_share_free(struct kp_share *s)
{
	if (!s)
		return;
	kp_outfile_close(&s->unique.file);
	free(s->unique.tail);
	free(s->objects);
	free(s->extents);
	if (s->finder) {
		free(s->finder->slots);
		free(s->finder->places);
	}
	free(s->finder);
	free(s);
}

/* --- anchors ------------------------------------------------------------------------------ */

/* 128 MiB: for about 4 GB of unique bytes. */
static const size_t SLOTS_FIRST = 1 << 12, SLOTS_MAX = 1 << 23;

/*
 * Slots that are tried, and slots that are tried when the table can grow no more.  A table
 * that is at most half full has no such long run of slots, unless the data was made for
 * one; which anchors are found must not depend on a random number.
 */
enum { TRIES = 256, TRIES_LAST = 8 };

static struct anchor *anchor_slot(struct anchor *slots, size_t n, uint64_t hash)
{
	size_t mask = n - 1, first = (size_t)(hash >> 32) & mask;
	size_t tries = n == SLOTS_MAX ? TRIES_LAST : TRIES;

	for (size_t i = 0; i <= tries; i++) {
		struct anchor *s = &slots[(first + i) & mask];

		if (!s->hash || s->hash == hash)
			return s;
	}
	return &slots[first];
}

/* Note POS for HASH, in place of the last one. */
static kpack_error_t put_anchor(struct share_finder *f, uint64_t hash, uint64_t pos,
				struct kpackx_error *why)
{
	struct anchor *s, *more;

	if (2 * f->used >= f->n_slots && f->n_slots < SLOTS_MAX) {
		size_t n = f->n_slots ? 2 * f->n_slots : SLOTS_FIRST;

		KP_TRY(kp_new(&more, n, "anchors", why));
		for (size_t i = 0; i < f->n_slots; i++)
			if (f->slots[i].hash)
				*anchor_slot(more, n, f->slots[i].hash) = f->slots[i];
		free(f->slots);
		f->slots = more;
		f->n_slots = n;
	}
	s = anchor_slot(f->slots, f->n_slots, hash | 1);
	f->used += !s->hash;
	*s = (struct anchor){hash | 1, pos};
	return KPACK_SUCCESS;
}

/* --- warm blocks --------------------------------------------------------------------------- */

/* Where BLOCK is among the warm blocks; N_WARM: it is not there. */
static unsigned find_warm(const struct share_finder *f, uint64_t block)
{
	unsigned i = 0;

	while (i < f->n_warm && f->warm[i] != block)
		i++;
	return i;
}

/* Append an extent of the object, or lengthen its last one; its blocks are warm now. */
static kpack_error_t push_extent(struct kp_share *s, uint64_t pos, uint64_t size,
				 bool is_new, struct kpackx_error *why)
{
	struct share_finder *f = s->finder;
	struct kp_share_extent *last = NULL;

	for (uint64_t b = pos / KP_SHARE_BLOCK; b <= (pos + size - 1) / KP_SHARE_BLOCK;
	     b++) {
		unsigned i = find_warm(f, b);

		if (i == f->n_warm && f->n_warm < WARM_BLOCKS)
			f->n_warm++;
		else if (i == f->n_warm)
			i--; /* the one used longest ago goes */
		memmove(f->warm + 1, f->warm, i * sizeof(*f->warm));
		f->warm[0] = b;
	}
	s->size += size;
	if (s->n_extents > s->objects[s->n_objects])
		last = &s->extents[s->n_extents - 1];
	if (last && last->is_new == is_new && last->pos + last->size == pos) {
		last->size += size;
		return KPACK_SUCCESS;
	}
	KP_TRY(kp_room(&s->extents, s->n_extents, &s->extents_cap, "extents", why));
	s->extents[s->n_extents++] = (struct kp_share_extent){pos, size, is_new};
	return KPACK_SUCCESS;
}

/* --- one object ----------------------------------------------------------------------------- */

/* The object that is added. */
struct adding {
	struct kp_share *s;
	struct share_finder *f;
	struct kpackx_error *why;
	const uint8_t *data;
	size_t size;
	size_t run;  /* where the new bytes begin, after the last match */
	size_t done; /* bytes that are in extents */
	struct kp_reach reach;
};

/* Bytes of the object that are unique ones, too. */
struct match {
	size_t at, size;
	uint64_t pos;
};

/* Make the bytes from DONE to END unique ones, and note the anchors in them. */
static kpack_error_t take_new(struct adding *a, size_t end)
{
	struct share_finder *f = a->f;
	uint64_t pos = a->s->unique.size;
	size_t n = end - a->done, i;

	if (!n)
		return KPACK_SUCCESS;
	a->reach.most = KP_SHARED_SPAN_BLOCKS;
	if (!kp_reach_add(&a->reach, a->done, pos, n))
		return kp_fail(a->why, KPACK_ERROR_INVALID_ARGUMENT,
			       "an object has too many extents");
	KP_TRY(push_extent(a->s, pos, n, true, a->why));
	KP_TRY(append_unique(a->s, a->data + a->done, n, a->why));
	a->done = end;
	pos = a->s->unique.size -
	      end; /* of the object's first byte, if all were unique */
	for (i = 0; i < f->n_places && f->places[i].end <= end; i++)
		KP_TRY(put_anchor(f, f->places[i].hash, pos + f->places[i].end, a->why));
	f->n_places -= i;
	if (i && f->n_places)
		memmove(f->places, f->places + i, f->n_places * sizeof(*f->places));
	return KPACK_SUCCESS;
}

static size_t least_of(size_t a, uint64_t b)
{
	return a < b ? a : (size_t)b;
}

/* Lengthen M to the right, as far as the bytes are equal, and to END of the object. */
static kpack_error_t extend_right(struct adding *a, struct match *m, size_t end)
{
	const uint8_t *buf = a->f->buf;
	size_t n, i;

	do {
		const uint8_t *data = a->data + m->at + m->size;
		uint64_t pos = m->pos + m->size;

		n = least_of(least_of(COMPARE, end - m->at - m->size),
			     a->s->unique.size - pos);
		KP_TRY(kp_unique_read(&a->s->unique, pos, a->f->buf, n, a->why));
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

/* Look for a match around the bytes before END; *TAKEN: there is one, and it was taken. */
static kpack_error_t try_place(struct adding *a, size_t end, uint64_t hash, bool *taken)
{
	struct share_finder *f = a->f;
	const struct anchor *seen =
		f->n_slots ? anchor_slot(f->slots, f->n_slots, hash | 1) : NULL;
	struct match m = {.at = end};
	size_t decides, n, i;

	*taken = false;
	if (!seen || seen->hash != (hash | 1))
		return KPACK_SUCCESS;
	m.pos = seen->pos;
	/* to the left, as far as the bytes are equal */
	do {
		n = least_of(least_of(COMPARE, m.at - a->done), m.pos);
		KP_TRY(kp_unique_read(&a->s->unique, m.pos - n, f->buf, n, a->why));
		for (i = 0; i < n && f->buf[n - 1 - i] == a->data[m.at - 1 - i];)
			i++;
		m.at -= i;
		m.pos -= i;
		m.size += i;
	} while (n && i == n);
	if (m.size < WINDOW || !is_reachable(a, &m))
		return KPACK_SUCCESS;
	/*
	 * The part that decides whether the match is taken: once it is long enough, only the
	 * span in which it begins can reach too much.
	 */
	decides = KP_SHARE_BLOCK - m.at % KP_SHARE_BLOCK;
	decides = decides > COLD_MIN ? decides : COLD_MIN;
	decides = decides > m.size ? decides : m.size;
	KP_TRY(extend_right(a, &m, m.at + least_of(decides, a->size - m.at)));
	if (m.size < COLD_MIN &&
	    (m.size < (m.at == a->run ? NEXT_MIN : WARM_MIN) ||
	     find_warm(f, m.pos / KP_SHARE_BLOCK) == f->n_warm ||
	     find_warm(f, (m.pos + m.size - 1) / KP_SHARE_BLOCK) == f->n_warm))
		return KPACK_SUCCESS;
	if (!is_reachable(a, &m))
		return KPACK_SUCCESS;
	KP_TRY(extend_right(a, &m, a->size));
	KP_TRY(take_new(a, m.at));
	a->reach.most = KP_SHARED_SPAN_BLOCKS;
	kp_reach_add(&a->reach, m.at, m.pos, m.size);
	KP_TRY(push_extent(a->s, m.pos, m.size, false, a->why));
	a->run = a->done = m.at + m.size;
	f->n_places = 0;
	*taken = true;
	return KPACK_SUCCESS;
}

static kpack_error_t begin_object(struct kp_share *s, struct kpackx_error *why)
{
	KP_TRY(kp_room(&s->objects, (size_t)s->n_objects + 1, &s->objects_cap, "objects",
		       why));
	s->objects[s->n_objects] = s->n_extents;
	return KPACK_SUCCESS;
}

kpack_error_t kp_share_add(struct kp_share *s, struct kp_span data,
			   struct kpackx_error *why)
{
	struct share_finder *f = s->finder;
	struct adding a = {
		.s = s, .f = f, .why = why, .data = data.data, .size = data.size};
	uint64_t rolling = 0, hash;
	bool taken;

	KP_TRY(begin_object(s, why));
	f->n_places = 0;
	kp_reach_begin(&a.reach, KP_SHARE_BLOCK, KP_SHARED_SPAN_BLOCKS);
	for (size_t i = 0; i < data.size; i++) {
		rolling = kp_rolling_add(rolling, data.data[i]);
		if (rolling >> ANCHOR_SHIFT || i + 1 - a.run < WINDOW)
			continue;
		hash = kp_hash64(data.data + i + 1 - WINDOW, WINDOW, 0);
		KP_TRY(try_place(&a, i + 1, hash, &taken));
		if (taken) {
			i = a.done - 1;
			rolling = 0;
			continue;
		}
		KP_TRY(kp_room(&f->places, f->n_places, &f->places_cap, "places", why));
		f->places[f->n_places++] = (struct place){hash, i + 1};
		if (i + 1 - a.done > RUN_MAX)
			KP_TRY(take_new(&a, i + 1 - RUN_KEPT));
	}
	KP_TRY(take_new(&a, a.size));
	s->objects[++s->n_objects] = s->n_extents;
	return KPACK_SUCCESS;
}

/* --- objects whose extents are known ----------------------------------------------------------- */

kpack_error_t kp_share_append(struct kp_share *s, struct kp_span data, bool searched,
			      struct kpackx_error *why)
{
	uint64_t pos = s->unique.size, rolling = 0;

	KP_TRY(append_unique(s, data.data, data.size, why));
	for (size_t i = 0; searched && i < data.size; i++) {
		rolling = kp_rolling_add(rolling, data.data[i]);
		if (rolling >> ANCHOR_SHIFT || i + 1 < WINDOW)
			continue;
		KP_TRY(put_anchor(s->finder,
				  kp_hash64(data.data + i + 1 - WINDOW, WINDOW, 0),
				  pos + i + 1, why));
	}
	return KPACK_SUCCESS;
}

kpack_error_t kp_share_add_extents(struct kp_share *s,
				   const struct kp_share_extent *extents, size_t n,
				   struct kpackx_error *why)
{
	KP_TRY(begin_object(s, why));
	for (size_t i = 0; i < n; i++)
		KP_TRY(push_extent(s, extents[i].pos, extents[i].size, false, why));
	s->objects[++s->n_objects] = s->n_extents;
	return KPACK_SUCCESS;
}

kpack_error_t kp_share_read(const struct kp_share *s, uint32_t object, uint8_t *buf,
			    struct kpackx_error *why)
{
	for (size_t i = s->objects[object]; i < s->objects[object + 1]; i++) {
		const struct kp_share_extent *e = &s->extents[i];

		KP_TRY(kp_unique_read(&s->unique, e->pos, buf, (size_t)e->size, why));
		buf += e->size;
	}
	return KPACK_SUCCESS;
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

uint64_t kp_share_objects_bound(const struct kp_share *s)
{
	return (uint64_t)s->n_objects * NUMBER_MAX + (uint64_t)s->n_extents * EXTENT_MAX;
}

/* See the format in core/archive/shared.c. */
kpack_error_t kp_share_objects(const struct kp_share *s, uint8_t **out, size_t *size,
			       struct kpackx_error *why)
{
	/* where the next extent of each kind begins, unless a distance says otherwise */
	uint64_t unique = 0, elsewhere = 0;
	uint8_t *to;

	*out = to = malloc((size_t)kp_share_objects_bound(s) + 1);
	if (!to)
		return kp_fail_memory(why, kp_share_objects_bound(s), "extents");
	for (uint32_t i = 0; i < s->n_objects; i++) {
		to = put_number(to, s->objects[i + 1] - s->objects[i]);
		for (size_t k = s->objects[i]; k < s->objects[i + 1]; k++) {
			const struct kp_share_extent *e = &s->extents[k];
			uint64_t distance = e->pos - elsewhere;

			if (e->pos == unique) {
				to = put_number(to, e->size << 1);
				unique = e->pos + e->size;
				continue;
			}
			to = put_number(to, e->size << 1 | 1);
			to = put_number(to, distance << 1 ^ (0 - (distance >> 63)));
			elsewhere = e->pos + e->size;
		}
	}
	*size = (size_t)(to - *out);
	return KPACK_SUCCESS;
}
