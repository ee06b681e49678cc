/* SPDX-License-Identifier: MIT */
#include "block_pool.h"
#include <stdatomic.h>
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/hash.h"
#include "core/base/lock.h"
#include "shared_frame.h"
#include "shared_internal.h"

enum { BUCKETS = 1024 };

enum state { BUSY, READY, FAILED };

struct kp_frame {
	struct kp_frame *same_bucket; /* not if FAILED */
	struct kp_frame *newer, *older;
	const struct kp_shared *owner;
	uint32_t number;
	enum state state;
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

static struct kp_frame *find_frame(const struct kp_shared *s, uint32_t number)
{
	struct kp_frame *f = *bucket_of(s, number);

	while (f && (f->owner != s || f->number != number))
		f = f->same_bucket;
	return f;
}

/* --- the list by use ------------------------------------------------------------------ */

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
	if (f->number < kp_shared_first_block(f->owner))
		pool.dictionary = f;
}

/* --- frames --------------------------------------------------------------------------- */

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

static void free_frame(struct kp_frame *f)
{
	free(f->bytes);
	free(f);
}

/*
 * Take the oldest unused frames out of the pool, except KEPT (NULL: none), until it has no
 * more than MOST bytes.
 */
static struct kp_frame *drop_oldest(uint64_t most, const struct kp_frame *kept)
{
	struct kp_frame *dropped = NULL, *newer;

	for (struct kp_frame *f = pool.oldest; f && pool.held > most; f = newer) {
		newer = f->newer;
		if (f->pins || f == kept)
			continue;
		unlink_used(f);
		remove_frame(f);
		f->older = dropped;
		dropped = f;
	}
	return dropped;
}

/*
 * As drop_oldest, to what the pool may keep.  The dictionary that was used last stays: every
 * block that is decoded needs it.  A pool of less than two dictionaries has as many bytes
 * more as leave half of it to blocks.
 */
static struct kp_frame *drop_spare(void)
{
	uint64_t most = pool.most, half = most / 2;

	if (pool.dictionary && pool.dictionary->size > half)
		most = pool.dictionary->size + half;
	return drop_oldest(most, pool.dictionary);
}

static void free_frames(struct kp_frame *list)
{
	while (list) {
		struct kp_frame *f = list;

		list = f->older;
		free_frame(f);
	}
}

static struct kp_frame *add_frame(const struct kp_shared *s, uint32_t number)
{
	struct kp_frame **bucket = bucket_of(s, number);
	struct kp_frame *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->owner = s;
	f->number = number;
	f->decoder = pthread_self();
	f->pins = 1;
	f->size = kp_shared_frame_size(s, number);
	f->same_bucket = *bucket;
	*bucket = f;
	pool.held += f->size;
	return f;
}

/*
 * Find or add a frame, and pin it; if it is BUSY, *DECODES: the caller is to decode it.
 * NULL: out of memory.
 */
static struct kp_frame *pin_frame(const struct kp_shared *s, uint32_t number,
				  bool *decodes)
{
	struct kp_frame *f = find_frame(s, number);

	*decodes = !f;
	if (!f)
		return add_frame(s, number);
	f->pins++;
	while (f->state == BUSY)
		kp_lock_wait(&lock);
	if (f->state == READY) {
		unlink_used(f);
		link_newest(f);
	}
	return f;
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
	if (s->dictionary_size && f->number) {
		KP_TRY(kp_pool_get(s, 0, &dictionary, why));
		prefix = (struct kp_span){dictionary->bytes, (size_t)dictionary->size};
	}
	err = kp_frame_decode(s, f->number, prefix, f->bytes, why);
	if (dictionary)
		kp_pool_put(dictionary);
	return err;
}

static void settle_frame(struct kp_frame *f, kpack_error_t err)
{
	f->state = err ? FAILED : READY;
	if (err)
		remove_frame(f);
	else
		link_newest(f);
	kp_lock_wake(&lock);
}

kpack_error_t kp_pool_get(const struct kp_shared *s, uint32_t number,
			  struct kp_frame **out, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	struct kp_frame *f;
	bool decodes, failed;

	do {
		kp_lock_take(&lock);
		f = pin_frame(s, number, &decodes);
		failed = f && f->state == FAILED;
		kp_lock_give(&lock);
		if (!f)
			return kp_fail_memory(why, sizeof(*f), "a block");
		if (failed) /* another thread's failure; this one reports its own */
			kp_pool_put(f);
	} while (failed);
	if (decodes) {
		err = decode_frame(f, why);
		kp_lock_take(&lock);
		settle_frame(f, err);
		kp_lock_give(&lock);
	}
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
	struct kp_frame *dropped = NULL;

	kp_lock_take(&lock);
	f->pins--;
	if (f->state == FAILED && !f->pins)
		dropped = f;
	else if (f->state == READY && !f->pins)
		dropped = drop_spare();
	kp_lock_give(&lock);
	free_frames(dropped);
}

void kp_pool_limit(uint64_t most)
{
	struct kp_frame *dropped;

	kp_lock_take(&lock);
	pool.most = most;
	dropped = drop_oldest(most, NULL);
	kp_lock_give(&lock);
	free_frames(dropped);
}

void kp_pool_forget(const struct kp_shared *s)
{
	struct kp_frame *dropped = NULL, *newer;

	kp_lock_take(&lock);
	for (struct kp_frame *f = pool.oldest; f; f = newer) {
		newer = f->newer;
		if (f->owner != s)
			continue;
		unlink_used(f);
		remove_frame(f);
		f->older = dropped;
		dropped = f;
	}
	kp_lock_give(&lock);
	free_frames(dropped);
}

uint64_t kp_pool_held(void)
{
	return atomic_load_explicit(&pool.held, memory_order_relaxed);
}
