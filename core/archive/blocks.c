/* SPDX-License-Identifier: MIT */
/*
 * Reading objects of shared archives: the pool of decoded frames, and the copying of extents
 * from it.
 *
 * A frame of the pool is
 *
 *   BUSY     the thread that added it decodes it, without the lock; others wait
 *   READY    its bytes are there and do not change; it is in the list by use
 *   FAILED   decoding failed: it is out of the pool, and goes with its last pin
 *
 * Each thread that uses or awaits a frame has a pin on it; only frames without pins are freed,
 * the one used longest ago first.  A thread that waited for a FAILED frame tries it itself,
 * and so reports an error of its own.  The dictionary of a
 * block is pinned only while the block is decoded: all bytes that are copied out are a block's.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/base/lock.h"
#include "frames.h"
#include "shared.h"

/* --- one frame ---------------------------------------------------------------------------- */

kpack_error_t kp_shared_read_frame(const struct kp_shared *s, uint32_t frame,
				   uint8_t *buf, struct kpackx_error *why)
{
	size_t n = (size_t)kp_frame_stored(s, frame);

	KP_TRY(kp_file_pread(s->fd, s->offsets[frame], buf, n, why));
	if (s->hashes && kp_hash64(buf, n, 0) != s->hashes[frame])
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "does not match its hash: damaged");
	return KPACK_SUCCESS;
}

/* Decode a frame into BUF, which has room for its bytes.  PREFIX is the dictionary, or empty. */
static kpack_error_t decode_stored(const struct kp_shared *s, uint32_t frame,
				   struct kp_span prefix, uint8_t *buf,
				   struct kpackx_error *why)
{
	struct kp_span stored = {.size = (size_t)kp_frame_stored(s, frame)};
	uint64_t size = kp_frame_size(s, frame);
	KP_AUTO_FREE uint8_t *bytes = malloc(stored.size);
	struct kp_frame_header h;

	if (!bytes)
		return kp_fail_memory(why, stored.size, "a block");
	KP_TRY(kp_shared_read_frame(s, frame, bytes, why));
	stored.data = bytes;
	/* the header must be as the format says, so that every reader decodes the same */
	if (!kp_frame_header_read(stored, &h) || h.skippable || h.dictionary ||
	    !h.checksum || h.content != size)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "not one frame of %llu bytes, with a checksum",
			       (unsigned long long)size);
	return kp_zstd_decode_with(prefix, stored, buf, (size_t)size, why);
}

/* --- the pool ----------------------------------------------------------------------------- */

enum { BUCKETS = 1024 };

struct kp_frame {
	struct kp_frame *same_bucket; /* not if FAILED */
	struct kp_frame *newer, *older;
	const struct kp_shared *owner;
	uint32_t number;
	enum { BUSY, READY, FAILED } state;
	pthread_t decoder; /* the thread that decodes it, or did */
	unsigned pins; /* by its decoder, by readers, and by threads that wait for it */
	uint64_t size;
	uint8_t *bytes;
};

static void settle_in_child(void);

/* Guards the pool, and the frames' fields. */
KP_LOCK(lock, KP_LOCK_INNER, settle_in_child)

static struct pool {
	uint64_t most;
	_Atomic uint64_t held;            /* written with the lock */
	struct kp_frame *newest, *oldest; /* READY ones */
	struct kp_frame *dictionary;      /* the one used last, if it is READY */
	struct kp_frame *buckets[BUCKETS];
} pool = {.most = KP_POOL_BYTES};

static struct kp_frame **bucket_of(const struct kp_shared *s, uint32_t number)
{
	uint64_t key[2] = {(uintptr_t)s, number};

	return &pool.buckets[kp_slot_hash(key, sizeof(key), 0) % BUCKETS];
}

/* The list of READY frames by use: its end is where frames are taken out. */
static void unlink_used(struct kp_frame *f)
{
	*(f->newer ? &f->newer->older : &pool.newest) = f->older;
	*(f->older ? &f->older->newer : &pool.oldest) = f->newer;
	f->newer = f->older = NULL;
}

static void link_newest(struct kp_frame *f)
{
	f->older = pool.newest;
	*(f->older ? &f->older->newer : &pool.oldest) = f;
	pool.newest = f;
	if (f->number < f->owner->first_block)
		pool.dictionary = f;
}

static void remove_frame(struct kp_frame *f)
{
	struct kp_frame **at = bucket_of(f->owner, f->number);

	while (*at != f)
		at = &(*at)->same_bucket;
	*at = f->same_bucket;
	pool.held -= f->size;
	if (pool.dictionary == f)
		pool.dictionary = NULL;
}

/*
 * No thread of a child of fork() decodes the frames that other threads of its parent were
 * decoding; the next reader begins anew.  Frames that those threads used stay until their
 * archive is closed.
 */
static void settle_in_child(void)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct kp_frame *f = pool.buckets[i], *next; f; f = next) {
			next = f->same_bucket;
			if (f->state != BUSY || pthread_equal(f->decoder, pthread_self()))
				continue;
			remove_frame(f);
			f->state = FAILED;
		}
}

/*
 * Take frames out of the pool, the oldest first: those of OWNER; or, if it is NULL, unused
 * ones except KEPT (NULL: none), until the pool has no more than MOST bytes.
 */
static struct kp_frame *take_out(const struct kp_shared *owner, uint64_t most,
				 const struct kp_frame *kept)
{
	struct kp_frame *out = NULL, *newer;

	for (struct kp_frame *f = pool.oldest; f; f = newer) {
		newer = f->newer;
		if (!owner && pool.held <= most)
			break;
		if (owner ? f->owner != owner : f->pins || f == kept)
			continue;
		unlink_used(f);
		remove_frame(f);
		f->older = out;
		out = f;
	}
	return out;
}

static void free_frames(struct kp_frame *list)
{
	while (list) {
		struct kp_frame *f = list;

		list = f->older;
		free(f->bytes);
		free(f);
	}
}

/* Decode the bytes of F, which the caller has pinned as BUSY, without the lock. */
static kpack_error_t decode_frame(struct kp_frame *f, struct kpackx_error *why)
{
	const struct kp_shared *s = f->owner;
	struct kp_frame *dictionary = NULL;
	struct kp_span prefix = {0};
	kpack_error_t err;

	f->bytes = kp_large_alloc((size_t)f->size);
	if (!f->bytes)
		return kp_fail_memory(why, f->size, "a block");
	if (f->number < s->first_block) {
		err = decode_stored(s, f->number, prefix, f->bytes, why);
		return err ? kp_fail_prefix(why, err, "dictionary") : KPACK_SUCCESS;
	}
	if (s->first_block) {
		KP_TRY(kp_pool_get(s, 0, &dictionary, why));
		prefix = (struct kp_span){dictionary->bytes, (size_t)dictionary->size};
	}
	err = decode_stored(s, f->number, prefix, f->bytes, why);
	if (dictionary)
		kp_pool_put(dictionary);
	return err ? kp_fail_prefix(why, err, "block %u", f->number - s->first_block)
		   : KPACK_SUCCESS;
}

kpack_error_t kp_pool_get(const struct kp_shared *s, uint32_t number,
			  struct kp_frame **out, struct kpackx_error *why)
{
	struct kp_frame **bucket = bucket_of(s, number), *f;
	kpack_error_t err;

	for (;;) {
		kp_lock_take(&lock);
		f = *bucket;
		while (f && (f->owner != s || f->number != number))
			f = f->same_bucket;
		if (!f)
			break;
		f->pins++;
		while (f->state == BUSY)
			kp_lock_wait(&lock);
		if (f->state == READY) {
			unlink_used(f);
			link_newest(f);
			kp_lock_give(&lock);
			*out = f;
			return KPACK_SUCCESS;
		}
		kp_lock_give(&lock);
		kp_pool_put(f); /* another thread's failure; this one reports its own */
	}
	/* it is not there: add it, and decode it without the lock, while others wait for it */
	f = calloc(1, sizeof(*f));
	if (f) {
		f->owner = s;
		f->number = number;
		f->decoder = pthread_self();
		f->pins = 1;
		f->size = kp_frame_size(s, number);
		f->same_bucket = *bucket;
		*bucket = f;
		pool.held += f->size;
	}
	kp_lock_give(&lock);
	if (!f)
		return kp_fail_memory(why, sizeof(*f), "a block");
	err = decode_frame(f, why);
	kp_lock_take(&lock);
	f->state = err ? FAILED : READY;
	if (err)
		remove_frame(f);
	else
		link_newest(f);
	kp_lock_wake(&lock);
	kp_lock_give(&lock);
	if (err)
		kp_pool_put(f);
	else
		*out = f;
	return err;
}

const uint8_t *kp_frame_bytes(const struct kp_frame *f)
{
	return f->bytes;
}

void kp_pool_put(struct kp_frame *f)
{
	struct kp_frame *out = NULL;
	uint64_t most, half;

	kp_lock_take(&lock);
	f->pins--;
	if (f->state == FAILED && !f->pins) {
		out = f;
	} else if (f->state == READY && !f->pins) {
		/*
		 * The dictionary that was used last stays: every block that is decoded needs it.
		 * A pool of less than two dictionaries has as many bytes more as leave half of it
		 * to blocks.
		 */
		most = pool.most;
		half = most / 2;
		if (pool.dictionary && pool.dictionary->size > half)
			most = pool.dictionary->size + half;
		out = take_out(NULL, most, pool.dictionary);
	}
	kp_lock_give(&lock);
	free_frames(out);
}

void kp_pool_limit(uint64_t most)
{
	struct kp_frame *out;

	kp_lock_take(&lock);
	pool.most = most;
	out = take_out(NULL, most, NULL);
	kp_lock_give(&lock);
	free_frames(out);
}

void kp_pool_forget(const struct kp_shared *s)
{
	struct kp_frame *out;

	kp_lock_take(&lock);
	out = take_out(s, 0, NULL);
	kp_lock_give(&lock);
	free_frames(out);
}

uint64_t kp_pool_held(void)
{
	return atomic_load_explicit(&pool.held, memory_order_relaxed);
}

/* --- objects ------------------------------------------------------------------------------ */

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

/* Bytes of one block that are wanted; sorted by block, so that each is got once for all. */
struct piece {
	uint32_t block;
	uint32_t from, size; /* in the block */
	uint64_t to;         /* in the buffer */
};

static int by_block(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->block != y->block)
		return KP_ORDER(x->block, y->block);
	return KP_ORDER(x->to, y->to);
}

kpack_error_t kp_shared_read(const struct kp_shared *s, uint32_t object, uint64_t offset,
			     void *buf, uint64_t size, struct kpackx_error *why)
{
	/* blocks' worth of an object for which each block is decoded once */
	enum { STRETCH = 16 };
	const struct kp_shared_object *o = &s->objects[object];
	uint64_t stretch = STRETCH * s->block_size, end = offset + size, until;
	KP_AUTO_FREE struct piece *pieces = NULL;
	size_t n, cap = 0;

	/*
	 * Stretches begin at multiples of their size in the object, wherever the read begins, so
	 * that the blocks of a stretch are within the reach that opening has checked.
	 */
	for (uint64_t at = offset; at < end; at = until) {
		size_t extent = extent_at(s, o, at);

		until = (at / stretch + 1) * stretch;
		until = until < end ? until : end;
		n = 0;
		for (uint64_t next = at; next < until;) {
			const struct kp_extent *e = &s->extents[extent];
			uint64_t skip = next - e->at, pos = e->pos + skip;
			uint64_t left = kp_extent_size(s, o, extent) - skip;
			uint64_t from = pos % s->block_size;
			uint64_t part = s->block_size - from;

			left = left < until - next ? left : until - next;
			part = part < left ? part : left;
			KP_TRY(kp_room(&pieces, n, &cap, "an object's extents", why));
			pieces[n++] = (struct piece){(uint32_t)(pos / s->block_size),
						     (uint32_t)from, (uint32_t)part,
						     next - offset};
			next += part;
			extent += part == left;
		}
		qsort(pieces, n, sizeof(*pieces), by_block);
		for (size_t i = 0; i < n;) {
			const uint32_t block = pieces[i].block;
			struct kp_frame *f;

			KP_TRY(kp_pool_get(s, block + s->first_block, &f, why));
			for (; i < n && pieces[i].block == block; i++)
				memcpy((uint8_t *)buf + pieces[i].to,
				       f->bytes + pieces[i].from, pieces[i].size);
			kp_pool_put(f);
		}
	}
	return KPACK_SUCCESS;
}

uint64_t kp_shared_visits(const struct kp_shared *s, uint32_t object, uint64_t offset,
			  uint64_t size)
{
	const struct kp_shared_object *o = &s->objects[object];
	uint64_t end = offset + size, visits = 0, block = UINT64_MAX;
	size_t i = extent_at(s, o, offset);

	for (uint64_t at = offset, until; at < end; i++, at = until) {
		const struct kp_extent *e = &s->extents[i];
		uint64_t first = e->pos + (at - e->at), last;

		until = e->at + kp_extent_size(s, o, i);
		until = until < end ? until : end;
		last = (first + (until - at) - 1) / s->block_size;
		first /= s->block_size;
		visits += last - first + (first != block);
		block = last;
	}
	return visits;
}

uint64_t kp_shared_memory(const struct kp_shared *s)
{
	return s->dictionary_size + 2 * s->block_size;
}

void kp_shared_mark_blocks(const struct kp_shared *s, uint32_t object, bool *blocks)
{
	const struct kp_shared_object *o = &s->objects[object];

	for (size_t i = o->first; i < o[1].first; i++) {
		uint64_t pos = s->extents[i].pos,
			 last = pos + kp_extent_size(s, o, i) - 1;

		for (uint64_t b = pos / s->block_size; b <= last / s->block_size; b++)
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
	*trained = kp_le32(f->bytes) == KP_TRAINED_DICTIONARY;
	kp_pool_put(f);
	return KPACK_SUCCESS;
}
