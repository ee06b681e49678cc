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
#include <sys/random.h>
#include <time.h>
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

/* Chosen when it is first needed; a child process has its parent's. */
static uint64_t slot_key(void)
{
	static _Atomic uint64_t key; /* 0: not chosen yet */
	uint64_t chosen = atomic_load_explicit(&key, memory_order_relaxed), fresh = 0;
	struct timespec now[2];

	if (chosen)
		return chosen;
	if (getrandom(&fresh, sizeof(fresh), GRND_NONBLOCK) != sizeof(fresh)) {
		/* a system that has no random bytes yet: the time, and where the stack is */
		clock_gettime(CLOCK_REALTIME, &now[0]);
		clock_gettime(CLOCK_MONOTONIC, &now[1]);
		fresh = kp_hash64(now, sizeof(now), (uintptr_t)&now);
	}
	fresh |= 1; /* not 0 */
	return atomic_compare_exchange_strong(&key, &chosen, fresh) ? fresh : chosen;
}

uint64_t kp_slot_hash(const void *data, size_t size, uint64_t seed)
{
	return XXH3_64bits_withSeed(data, size, seed + slot_key());
}

/* --- MD5 ------------------------------------------------------------------------------- */

enum { BLOCK = 64 };

/* The first 32 bits of the fraction of |sin(i + 1)|. */
static const uint32_t sines[64] = {
	0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a,
	0xa8304613, 0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be,
	0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340,
	0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
	0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8,
	0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c,
	0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
	0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
	0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92,
	0xffeff47d, 0x85845dd1, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1,
	0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

/* Bits to rotate by: four per round, used in turn. */
static const uint8_t turns[4][4] = {
	{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

static uint32_t mix_words(unsigned round, uint32_t b, uint32_t c, uint32_t d)
{
	switch (round) {
	case 0:
		return (b & c) | (~b & d);
	case 1:
		return (b & d) + (c & ~d);
	case 2:
		return b ^ c ^ d;
	default:
		return c ^ (b | ~d);
	}
}

static void take_block(uint32_t state[4], const uint8_t *block)
{
	static const uint8_t step[4] = {1, 5, 3, 7}, first[4] = {0, 1, 5, 0};
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];

	/* a step waits for the one before it: what needs only the block comes first */
#pragma GCC unroll 64
	for (unsigned i = 0; i < 64; i++) {
		unsigned round = i / 16, word = (first[round] + step[round] * i) % 16;
		uint32_t known = a + sines[i] + kp_le32(block + 4 * (size_t)word);
		uint32_t sum = known + mix_words(round, b, c, d);
		unsigned turn = turns[round][i % 4];

		a = d;
		d = c;
		c = b;
		b += sum << turn | sum >> (32 - turn);
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
}

void kp_md5(struct kp_span data, uint8_t out[16])
{
	uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
	size_t rest = data.size % BLOCK, whole = data.size - rest;
	size_t n = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;
	uint8_t end[2 * BLOCK] = {0};

	for (size_t i = 0; i < whole; i += BLOCK)
		take_block(state, data.data + i);
	/* the last bytes, a one bit, zeros, and the length in bits: one or two blocks */
	if (rest)
		memcpy(end, data.data + whole, rest);
	end[rest] = 0x80;
	kp_put_le64(end + n - 8, data.size * 8);
	for (size_t i = 0; i < n; i += BLOCK)
		take_block(state, end + i);
	for (size_t i = 0; i < 4; i++)
		kp_put_le32(out + 4 * i, state[i]);
}
