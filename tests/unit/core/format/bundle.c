/* SPDX-License-Identifier: MIT */
/* Where objects of a bundle cannot be placed; golden bundler cases have where they are. */
#include "core/format/bundle.h"
#include "tests/unit/unit.h"

TEST(longer_than_a_file)
{
	struct kp_bundle_row rows[] = {{.id = kp_span_str("a")},
				       {.id = kp_span_str("b")}};
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
