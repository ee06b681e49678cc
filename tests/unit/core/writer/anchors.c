/* SPDX-License-Identifier: MIT */
#include "core/writer/anchors.h"
#include "tests/unit/unit.h"

enum { N = 20000 };

/* A hash for a place of its own in a table of any size. */
static uint64_t spread_hash(uint32_t i)
{
	return (uint64_t)i << 32 | 1;
}

TEST(all_anchors_are_found)
{
	struct kp_anchors a = {0};
	uint64_t pos;

	assert_false(kp_anchors_find(&a, spread_hash(0), &pos));
	for (uint32_t i = 0; i < N; i++)
		assert_true(kp_anchors_put(&a, spread_hash(i), i));
	for (uint32_t i = 0; i < N; i++) {
		assert_true(kp_anchors_find(&a, spread_hash(i), &pos));
		assert_int_equal(pos, i);
	}
	assert_false(kp_anchors_find(&a, spread_hash(N), &pos));
	assert_int_equal(a.used, N);
	kp_anchors_fini(&a);
}

/* Anchors that were made for one place do not fill the table, nor find each other. */
TEST(anchors_of_one_place_are_few)
{
	struct kp_anchors a = {0};
	size_t found = 0;

	for (uint64_t i = 0; i < N; i++)
		assert_true(kp_anchors_put(&a, i << 1 | 1, i));
	for (uint64_t i = 0; i < N; i++) {
		uint64_t pos;

		if (!kp_anchors_find(&a, i << 1 | 1, &pos))
			continue;
		assert_int_equal(pos, i);
		found++;
	}
	assert_in_range(a.used, 1, 1000);
	assert_int_equal(found, a.used);
	kp_anchors_fini(&a);
}
