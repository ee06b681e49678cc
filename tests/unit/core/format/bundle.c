/* SPDX-License-Identifier: MIT */
/* Placing the objects of a bundle that is written. */
#include "core/format/bundle.h"
#include "tests/unit/unit.h"

static struct kp_bundle_row row(const char *id, uint64_t size)
{
	return (struct kp_bundle_row){.id = kp_span_str(id), .size = size};
}

TEST(as_clang_places_them)
{
	struct kp_bundle_row rows[] = {row("host", 0), row("abc", 5000), row("def", 4096),
				       row("g", 1)};
	uint64_t size;

	assert_true(kp_bundle_place(rows, COUNT(rows), 4096, 0, &size));
	assert_int_equal(rows[0].offset, 4096);
	assert_int_equal(rows[1].offset, 4096);
	assert_int_equal(rows[2].offset, 12288);
	assert_int_equal(rows[3].offset, 16384);
	assert_int_equal(size, 16385);
	/* 32 + 4 * 24 + 11 bytes of IDs */
	assert_true(kp_bundle_place(rows, COUNT(rows), 1, 0, &size));
	assert_int_equal(rows[0].offset, 139);
	assert_int_equal(rows[3].offset, 139 + 9096);
	assert_true(kp_bundle_place(rows, COUNT(rows), 3, 0, &size));
	assert_int_equal(rows[1].offset, 141);
	assert_int_equal(rows[2].offset, 5142);
}

TEST(with_a_gap)
{
	struct kp_bundle_row rows[] = {row("host", 0), row("abc", 4000), row("", 0),
				       row("def", 10)};
	uint64_t size;

	assert_true(kp_bundle_place(rows, COUNT(rows), 4096, 8192, &size));
	assert_int_equal(rows[0].offset, 12288);
	assert_int_equal(rows[1].offset, 12288);
	/* an empty one adds no gap */
	assert_int_equal(rows[2].offset, 24576);
	assert_int_equal(rows[3].offset, 24576);
	assert_int_equal(size, 24586);
	assert_true(kp_bundle_place(rows, 0, 4096, 8192, &size));
	assert_int_equal(size, KP_BUNDLE_HEADER_MIN);
}

TEST(longer_than_a_file)
{
	struct kp_bundle_row rows[] = {row("a", 0), row("b", 0)};
	uint64_t size;

	rows[0].size = INT64_MAX - 4096;
	assert_true(kp_bundle_place(rows, 1, 4096, 0, &size));
	assert_int_equal(size, INT64_MAX);
	rows[0].size++;
	assert_false(kp_bundle_place(rows, 1, 4096, 0, &size));
	rows[0].size = UINT64_MAX;
	assert_false(kp_bundle_place(rows, 1, 4096, 0, &size));
	/* the next place is behind the end of any file: by the gap, and by alignment */
	rows[0].size = INT64_MAX - 4096 - 100;
	assert_false(kp_bundle_place(rows, 2, 4096, 101, &size));
	assert_false(kp_bundle_place(rows, 2, 4096, 0, &size));
	assert_false(kp_bundle_place(rows, 2, 1, UINT64_MAX, &size));
	rows[0].size = rows[1].size = INT64_MAX / 2 + 1;
	assert_false(kp_bundle_place(rows, 2, 4096, 0, &size));
}
