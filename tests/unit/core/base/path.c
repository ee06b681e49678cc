/* SPDX-License-Identifier: MIT */
#include "core/base/path.h"
#include "tests/unit/unit.h"

TEST(names_and_directories)
{
	assert_string_equal(kp_path_name("a/b/c.co"), "c.co");
	assert_string_equal(kp_path_name("c.co"), "c.co");
	assert_string_equal(kp_path_name("a/"), "");
	assert_true(kp_span_is(kp_path_directory("a/b/c.co"), "a/b"));
	assert_true(kp_span_is(kp_path_directory("c.co"), ""));
	assert_true(kp_span_is(kp_path_directory("/c.co"), ""));
}

TEST(paths_below_a_directory)
{
	assert_string_equal(kp_path_below("a/b/c", "a/b"), "c");
	assert_string_equal(kp_path_below("/b", ""), "b");
	assert_null(kp_path_below("a/bc", "a/b"));
	assert_null(kp_path_below("a/b", "a/b"));
	assert_null(kp_path_below("a", "a/b"));
	assert_true(kp_path_within(kp_span_str("a/b/c"), "a/b"));
	assert_true(kp_path_within(kp_span_str("a/b"), "a/b"));
	assert_false(kp_path_within(kp_span_str("a/bc"), "a/b"));
	assert_false(kp_path_within(kp_span_str("a"), "a/b"));
}
