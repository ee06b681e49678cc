/* SPDX-License-Identifier: MIT */
#include "packer/base/digest.h"
#include "tests/unit/unit.h"

static const struct {
	const char *name;
	enum digest_kind kind;
	size_t size;
	uint8_t first[4]; /* of the digest of "abc" (FIPS 180-4) */
} known[] = {
	{"sha256", DIGEST_SHA256, 32, {0xba, 0x78, 0x16, 0xbf}},
	{"sha384", DIGEST_SHA384, 48, {0xcb, 0x00, 0x75, 0x3f}},
	{"sha512", DIGEST_SHA512, 64, {0xdd, 0xaf, 0x35, 0xa1}},
};

TEST(test_kinds)
{
	struct digest d = {0};
	uint8_t out[DIGEST_MAX];
	enum digest_kind kind;

	for (size_t i = 0; i < 3; i++) {
		assert_true(digest_kind_find(kp_span_str(known[i].name), &kind));
		assert_int_equal(kind, known[i].kind);
		assert_int_equal(digest_size(kind), known[i].size);
		digest_begin(&d, kind);
		digest_add(&d, kp_span_str("a"));
		digest_add(&d, kp_span_str("bc"));
		assert_int_equal(digest_end(&d, out, NULL), KPACK_SUCCESS);
		assert_memory_equal(out, known[i].first, 4);
	}
	assert_int_equal(digest_size(DIGEST_NONE), 0);
	assert_false(digest_kind_find(kp_span_str("md5"), &kind));
	assert_false(digest_kind_find(kp_span_str(""), &kind));
	digest_fini(&d);
	digest_fini(&d);
}

TEST(test_text)
{
	char out[DIGEST_TEXT];

	assert_int_equal(digest_text(kp_span_str(""), out, NULL), KPACK_SUCCESS);
	assert_string_equal(
		out, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}
