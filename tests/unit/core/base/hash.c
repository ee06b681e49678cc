/* SPDX-License-Identifier: MIT */
/* The content hash: equals xxhsum's, also when the content is hashed in pieces. */
#include "core/base/hash.h"
#include <stdio.h>
#include <string.h>
#include <xxhash.h>
#include "tests/unit/unit.h"

/* As `xxhsum -H2` prints them. */
TEST(values_of_xxhsum)
{
	static const struct {
		const char *data, *sum;
	} known[] = {
		{"", "99aa06d3014798d86001c324468d497f"},
		{"kpack", "14703b40e5e6c486c298848f6d424739"},
	};

	for (size_t i = 0; i < COUNT(known); i++) {
		struct kp_hash hash = kp_hash_of(known[i].data, strlen(known[i].data));
		char text[33];

		for (size_t k = 0; k < sizeof(hash.bytes); k++)
			snprintf(text + 2 * k, 3, "%02x", hash.bytes[k]);
		assert_string_equal(text, known[i].sum);
	}
}

TEST(pieces_give_the_hash_of_the_whole)
{
	static uint8_t data[100003];
	struct kp_hasher *hasher = kp_hasher_new();
	struct kp_hash whole, pieces;

	assert_non_null(hasher);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * i >> 3);
	whole = kp_hash_of(data, sizeof(data));
	for (size_t round = 0; round < 2; round++) {
		for (size_t at = 0, n; at < sizeof(data); at += n) {
			n = at % 1021 + 1;
			if (n > sizeof(data) - at)
				n = sizeof(data) - at;
			kp_hasher_add(hasher, data + at, n);
		}
		pieces = kp_hasher_value(hasher);
		assert_true(kp_hash_is(&pieces, whole.bytes));
		kp_hasher_reset(hasher);
	}
	pieces = kp_hasher_value(hasher);
	assert_false(kp_hash_is(&pieces, whole.bytes));
	kp_hasher_free(hasher);
	kp_hasher_free(NULL);
}

/* Long and short data take different ways through the hash: all must give what xxHash gives. */
TEST(every_length_and_alignment_is_xxhash)
{
	static uint8_t data[5000];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * i >> 3);
	for (size_t size = 0; size + 64 <= sizeof(data); size += size / 40 + 1)
		for (size_t at = 0; at < 64; at += 7) {
			struct kp_hash hash = kp_hash_of(data + at, size);
			struct kp_hasher *hasher = kp_hasher_new();
			XXH128_canonical_t want;

			XXH128_canonicalFromHash(&want, XXH3_128bits(data + at, size));
			assert_true(kp_hash_is(&hash, want.digest));
			assert_non_null(hasher);
			kp_hasher_add(hasher, data + at, size / 3);
			kp_hasher_add(hasher, data + at + size / 3, size - size / 3);
			hash = kp_hasher_value(hasher);
			assert_true(kp_hash_is(&hash, want.digest));
			kp_hasher_free(hasher);
		}
}
