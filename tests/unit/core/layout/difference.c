/* SPDX-License-Identifier: MIT */
#include "core/layout/difference.h"
#include "tests/unit/unit.h"
#include <stdlib.h>
#include "tests/unit/bundle_builder.h"

static struct kpackx_error why;

static struct bytes noise(size_t size, uint32_t seed)
{
	struct bytes b = {0};

	put_zeros(&b, size);
	for (size_t i = 0; i < size; i++) {
		seed = seed * 1664525 + 1013904223;
		b.data[i] = (uint8_t)(seed >> 24);
	}
	return b;
}

static struct kp_span span(const struct bytes *b)
{
	return (struct kp_span){b->data, b->size};
}

/* Returns the bytes of the difference, from which ORIGINAL is made again. */
static size_t round_trip(const struct bytes *payload, const struct bytes *original)
{
	uint8_t *difference = NULL, *again = malloc(original->size + 1);
	size_t size = 0;

	assert_non_null(again);
	assert_int_equal(kp_difference_make(span(payload), span(original), &difference,
					    &size, &why),
			 KPACK_SUCCESS);
	assert_int_equal(kp_difference_apply(span(payload),
					     (struct kp_span){difference, size}, again,
					     original->size, &why),
			 KPACK_SUCCESS);
	assert_memory_equal(again, original->data, original->size);
	/* a cut, or another size */
	assert_int_equal(kp_difference_apply(span(payload),
					     (struct kp_span){difference, size - 1},
					     again, original->size, &why),
			 KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_int_equal(kp_difference_apply(span(payload),
					     (struct kp_span){difference, size}, again,
					     original->size + 1, &why),
			 KPACK_ERROR_DECOMPRESSION_FAILED);
	free(again);
	free(difference);
	return size;
}

TEST(what_is_in_the_payload_costs_nothing)
{
	struct bytes payload = noise(3 << 20, 1), original = {0},
		     other = noise(1 << 20, 7);

	put(&original, "header", 6);
	for (size_t i = 0; i < 20; i++) {
		put(&original, "block", 5);
		put(&original, payload.data + i * 150000, 131072);
	}
	assert_in_range(round_trip(&payload, &original), 100, 20000);
	/* what is not is not made larger */
	assert_in_range(round_trip(&payload, &other), other.size, other.size + 200);
	bytes_free(&payload);
	bytes_free(&original);
	bytes_free(&other);
}

TEST(the_payload_is_needed)
{
	struct bytes payload = noise(1 << 20, 1), wrong = noise(1 << 20, 2),
		     original = {0};
	uint8_t *difference = NULL, *again;
	size_t size = 0;
	kpack_error_t err;

	put(&original, payload.data + 1000, 500000);
	again = malloc(original.size);
	assert_non_null(again);
	assert_int_equal(kp_difference_make(span(&payload), span(&original), &difference,
					    &size, &why),
			 KPACK_SUCCESS);
	/* the caller has a hash of the original */
	err = kp_difference_apply(span(&wrong), (struct kp_span){difference, size}, again,
				  original.size, &why);
	assert_true(err || memcmp(again, original.data, original.size) != 0);
	assert_int_equal(kp_difference_apply(span(&wrong), (struct kp_span){NULL, 0},
					     again, original.size, &why),
			 KPACK_ERROR_DECOMPRESSION_FAILED);
	free(again);
	free(difference);
	bytes_free(&payload);
	bytes_free(&wrong);
	bytes_free(&original);
}
