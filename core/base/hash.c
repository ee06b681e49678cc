/* SPDX-License-Identifier: MIT */
#include "hash.h"
#include <string.h>
#include <xxhash.h>

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
	XXH3_128bits_update((XXH3_state_t *)h, data, size);
}

struct kp_hash kp_hasher_value(const struct kp_hasher *h)
{
	return canonical_hash(XXH3_128bits_digest((const XXH3_state_t *)h));
}

uint64_t kp_hash64(const void *data, size_t size, uint64_t seed)
{
	return XXH3_64bits_withSeed(data, size, seed);
}
