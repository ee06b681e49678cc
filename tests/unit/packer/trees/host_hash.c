/* SPDX-License-Identifier: MIT */
/* Names that contain clang's hash. */
#include "packer/trees/host_hash.h"

#include "tests/unit/unit.h"

#define A "0123456789abcdef"
#define B "fedcba9876543210"

static int cmp(const char *a, const char *b)
{
	return host_name_cmp(kp_span_str(a), kp_span_str(b));
}

TEST(names)
{
	assert_int_equal(cmp("", ""), 0);
	assert_int_equal(cmp("a", "b"), -1);
	assert_int_equal(cmp("ab", "a"), 1);
	assert_int_equal(cmp("__hip_cuid_" A, "__hip_cuid_" B), 0);
	assert_int_equal(cmp("_ZL1x.static." A, "_ZL1x.static." B), 0);
	assert_int_equal(cmp("_ZL1x.static." A "y", "_ZL1x.static." B "z"), -1);
	/* without the prefix, or without 16 digits */
	assert_int_not_equal(cmp("cuid_" A, "cuid_" B), 0);
	assert_int_not_equal(cmp("__hip_cuid_" A "0", "__hip_cuid_" B "0"), 0);
	assert_int_not_equal(cmp("__hip_cuid_0", "__hip_cuid_1"), 0);
}

TEST(covers)
{
	struct kp_span text = {(const uint8_t *)"x\0__hip_cuid_" A "\0z", 31};
	size_t begin = 0;

	assert_true(host_hash_covers(text, 13, &begin));
	assert_int_equal(begin, 13);
	assert_true(host_hash_covers(text, 28, &begin));
	assert_int_equal(begin, 13);
	assert_false(host_hash_covers(text, 29, &begin));
	assert_false(host_hash_covers(text, 12, &begin));
	assert_false(host_hash_covers(text, 0, &begin));
}
