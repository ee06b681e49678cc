/* SPDX-License-Identifier: MIT */
/*
 * The hash up to LLVM 22 is CityHash's for up to 64 bytes, with a seed; later it is XXH3.
 * The table uses open addressing with quadratic probing; it has 64 buckets at first, and
 * doubles before it is three quarters full.
 */
#include "string_map.h"
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "core/base/hash.h"

#define SEED UINT64_C(0xff51afd7ed558ccd)
#define BUCKETS_MIN 64
#define HASHED_MAX 64
#define EMPTY SIZE_MAX

#define K0 UINT64_C(0xc3a5c85c97cb3127)
#define K1 UINT64_C(0xb492b66fbe98f273)
#define K2 UINT64_C(0x9ae16a3b2f90404f)
#define K3 UINT64_C(0xc949d7c7509e6557)

/* ---- CityHash ---- */

static uint64_t rotate_bits(uint64_t v, unsigned bits)
{
	return bits ? v >> bits | v << (64 - bits) : v;
}

static uint64_t mix_bits(uint64_t v)
{
	return v ^ v >> 47;
}

static uint64_t hash_pair(uint64_t low, uint64_t high)
{
	const uint64_t k = UINT64_C(0x9ddfea08eb382d69);

	return mix_bits((high ^ mix_bits((low ^ high) * k)) * k) * k;
}

static uint64_t hash_to_3(const uint8_t *p, size_t n)
{
	uint32_t y = p[0] + ((uint32_t)p[n >> 1] << 8);
	uint32_t z = (uint32_t)n + ((uint32_t)p[n - 1] << 2);

	return mix_bits(y * K2 ^ z * K3 ^ SEED) * K2;
}

static uint64_t hash_to_8(const uint8_t *p, size_t n)
{
	return hash_pair(n + ((uint64_t)kp_le32(p) << 3), SEED ^ kp_le32(p + n - 4));
}

static uint64_t hash_to_16(const uint8_t *p, size_t n)
{
	uint64_t b = kp_le64(p + n - 8);

	return hash_pair(SEED ^ kp_le64(p), rotate_bits(b + n, (unsigned)n)) ^ b;
}

static uint64_t hash_to_32(const uint8_t *p, size_t n)
{
	uint64_t a = kp_le64(p) * K1, b = kp_le64(p + 8);
	uint64_t c = kp_le64(p + n - 8) * K2, d = kp_le64(p + n - 16) * K0;

	return hash_pair(rotate_bits(a - b, 43) + rotate_bits(c ^ SEED, 30) + d,
			 a + rotate_bits(b ^ K3, 20) - c + n + SEED);
}

/* Hash half of 33 to 64 bytes: 32 bytes, of which FIRST is weighted differently. */
static void hash_half(uint64_t first, uint64_t p8, uint64_t p16, uint64_t p24,
		      uint64_t *sum, uint64_t *turned)
{
	uint64_t a = first, b = rotate_bits(a + p24, 52), c = rotate_bits(a, 37);

	a += p8;
	c += rotate_bits(a, 7);
	a += p16;
	*sum = a + p24;
	*turned = b + rotate_bits(a, 31) + c;
}

static uint64_t hash_to_64(const uint8_t *p, size_t n)
{
	const uint8_t *end = p + n;
	uint64_t sum, turned, end_sum, end_turned;

	hash_half(kp_le64(p) + (n + kp_le64(end - 16)) * K0, kp_le64(p + 8),
		  kp_le64(p + 16), kp_le64(p + 24), &sum, &turned);
	hash_half(kp_le64(p + 16) + kp_le64(end - 32), kp_le64(end - 24),
		  kp_le64(end - 16), kp_le64(end - 8), &end_sum, &end_turned);
	return mix_bits((SEED ^
			 mix_bits((sum + end_turned) * K2 + (end_sum + turned) * K0) *
				 K0) +
			turned) *
	       K2;
}

static uint64_t city_hash(struct kp_span key)
{
	size_t n = key.size < HASHED_MAX ? key.size : HASHED_MAX;

	if (n == 0)
		return K2 ^ SEED;
	return n <= 3    ? hash_to_3(key.data, n)
	       : n <= 8  ? hash_to_8(key.data, n)
	       : n <= 16 ? hash_to_16(key.data, n)
	       : n <= 32 ? hash_to_32(key.data, n)
			 : hash_to_64(key.data, n);
}

static uint64_t hash_key(enum llvm_hash hash, struct kp_span key)
{
	return hash == LLVM_HASH_CITY ? city_hash(key)
				      : kp_hash64(key.data, key.size, 0) ^ SEED;
}

/* ---- the table ---- */

struct table {
	size_t *buckets; /* numbers of keys, or EMPTY */
	size_t n_buckets;
	const uint64_t *hashes;
};

static void insert_key(struct table *t, size_t number)
{
	size_t mask = t->n_buckets - 1, at = (uint32_t)t->hashes[number] & mask;

	for (size_t step = 1; t->buckets[at] != EMPTY; step++)
		at = (at + step) & mask;
	t->buckets[at] = number;
}

/* Move the keys to a table of N_BUCKETS, in the order of the old table. */
static void resize_table(struct table *t, size_t n_buckets)
{
	struct table old = *t;

	t->buckets = xmalloc(n_buckets * sizeof(*t->buckets));
	t->n_buckets = n_buckets;
	for (size_t i = 0; i < n_buckets; i++)
		t->buckets[i] = EMPTY;
	for (size_t i = 0; i < old.n_buckets; i++)
		if (old.buckets[i] != EMPTY)
			insert_key(t, old.buckets[i]);
	free(old.buckets);
}

static void fill_table(struct table *t, size_t n)
{
	resize_table(t, BUCKETS_MIN);
	for (size_t i = 0; i < n; i++) {
		if (4 * (i + 1) >= 3 * t->n_buckets)
			resize_table(t, 2 * t->n_buckets);
		insert_key(t, i);
	}
}

void llvm_hash_order(enum llvm_hash hash, const struct kp_span *keys, size_t n,
		     size_t *order)
{
	uint64_t *hashes = xmalloc(n * sizeof(*hashes));
	struct table t = {.hashes = hashes};

	for (size_t i = 0; i < n; i++)
		hashes[i] = hash_key(hash, keys[i]);
	fill_table(&t, n);
	for (size_t i = 0; i < t.n_buckets; i++)
		if (t.buckets[i] != EMPTY)
			*order++ = t.buckets[i];
	free(t.buckets);
	free(hashes);
}
