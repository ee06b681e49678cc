/* SPDX-License-Identifier: MIT */
/*
 * XXH3 from libxxhash, and its own code compiled for AVX2 where the processor has that, because
 * distributions build libxxhash for every x86-64.  Both give the same values, which files store, so
 * that it does not matter which machine wrote them.  Hash tables add a random number: with the values of files, somebody
 * could write a file all of whose names share one slot, and each look-up would walk all of them.
 */
#include "hash.h"
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include "hash_avx2.h"

/* XXH3 hashes up to so many bytes without vectors. */
#define SHORT 240

/* Whether this processor runs the code of hash_avx2.c. */
static bool has_avx2(void)
{
#ifdef __x86_64__
	__builtin_cpu_init(); /* the constructor that does it may not have run yet */
	return __builtin_cpu_supports("avx2");
#else
	return false;
#endif
}

static struct kp_hash canonical_hash(XXH128_hash_t hash)
{
	XXH128_canonical_t bytes;
	struct kp_hash out;

	XXH128_canonicalFromHash(&bytes, hash);
	memcpy(out.bytes, bytes.digest, sizeof(out.bytes));
	return out;
}

struct kp_hash kp_hash_of(const void *data, size_t size)
{
	if (size > SHORT && has_avx2())
		return canonical_hash(kp_hash_of_avx2(data, size));
	return canonical_hash(XXH3_128bits(data, size));
}

bool kp_hash_is(const struct kp_hash *hash, const uint8_t bytes[16])
{
	return memcmp(hash->bytes, bytes, sizeof(hash->bytes)) == 0;
}

/* A kp_hasher is an XXH3_state_t, which must be aligned as XXH3_createState does it. */
struct kp_hasher *kp_hasher_new(void)
{
	XXH3_state_t *state = XXH3_createState();

	if (state)
		XXH3_128bits_reset(state);
	return (struct kp_hasher *)state;
}

void kp_hasher_free(struct kp_hasher *h)
{
	XXH3_freeState((XXH3_state_t *)h);
}

void kp_hasher_reset(struct kp_hasher *h)
{
	XXH3_128bits_reset((XXH3_state_t *)h);
}

void kp_hasher_add(struct kp_hasher *h, const void *data, size_t size)
{
	if (size > SHORT && has_avx2())
		kp_hash_add_avx2((XXH3_state_t *)h, data, size);
	else
		XXH3_128bits_update((XXH3_state_t *)h, data, size);
}

struct kp_hash kp_hasher_value(const struct kp_hasher *h)
{
	return canonical_hash(XXH3_128bits_digest((const XXH3_state_t *)h));
}

/* Of more than SHORT bytes XXH3-64 is the low half of XXH3-128. */
uint64_t kp_hash64(const void *data, size_t size, uint64_t seed)
{
	if (!seed && size > SHORT && has_avx2())
		return kp_hash_of_avx2(data, size).low64;
	return XXH3_64bits_withSeed(data, size, seed);
}

/*
 * The key is a random number that the kernel gave to this program when it started, and that nobody
 * outside of it knows: it is there at boot, in a sandbox, and in a child of fork().
 */
uint64_t kp_slot_hash(const void *data, size_t size, uint64_t seed)
{
	static _Atomic uint64_t key; /* 0: not asked yet */
	uint64_t known = atomic_load_explicit(&key, memory_order_relaxed);

	if (!known) {
		/* NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel gives numbers */
		known = 1 | kp_hash64((const void *)getauxval(AT_RANDOM), 16, 0);
		atomic_store_explicit(&key, known, memory_order_relaxed);
	}
	return XXH3_64bits_withSeed(data, size, seed + known);
}
