/* SPDX-License-Identifier: MIT */
#include "packer/wheel/metadata/record.h"
#include <string.h>
#include "tests/unit/unit.h"

/* SHA-256 of no bytes, in both spellings */
#define NOTHING "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
#define NOTHING_HEX "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static struct kpackx_error why;
static struct record r;

static kpack_error_t parse(const char *text)
{
	why = (struct kpackx_error){0};
	return record_parse(kp_span_str(text), &r, &why);
}

TEST(test_lines)
{
	const struct record_line *l;

	assert_int_equal(parse("x/b.py,sha256=" NOTHING ",7\r\n\n"
			       "\"x/a,\"\"q\"\".py\",sha256=" NOTHING_HEX ",0\n"
			       "x-1.dist-info/RECORD,,"),
			 0);
	assert_int_equal(r.count, 3);
	assert_int_equal(r.n_hexadecimal, 1);
	l = record_find(&r, "x/a,\"q\".py");
	assert_non_null(l);
	assert_true(l->hexadecimal && l->has_size && l->size == 0);
	assert_memory_equal(l->digest, record_find(&r, "x/b.py")->digest, 32);
	assert_int_equal(l->digest[0], 0xe3);
	l = record_find(&r, "x-1.dist-info/RECORD");
	assert_true(l && l->kind == DIGEST_NONE && !l->has_size);
	assert_null(record_find(&r, "x"));
	record_fini(&r);
}

TEST(test_refused)
{
	static const char *const rows[][2] = {
		{"a,b", "line 1: not three columns"},
		{"a,,,", "not three columns"},
		{"a,,\n/b,,", "line 2: it"},
		{"a/../b,,", "line 1: it"},
		{"a,md5=x,", "not sha256"},
		{"a,sha1=x,", "not sha256"},
		{"a,sha256,", "not a hash"},
		{"a,sha256=abc,", "not urlsafe base64"},
		{"a,sha256=" NOTHING "=,", "not urlsafe base64"},
		{"a,sha256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU,", "not urlsafe"},
		/* the last digit has two bits beyond the final byte */
		{"a,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFV,", "not urlsafe"},
		{"a,,-1", "not a size"},
		{"a,,1K", "not a size"},
		{"a,,99999999999999999999", "not a size"},
		{"a,,\na,,", "a is listed twice"},
		{"\"a,,", "a quote is not closed"},
		{"\"a\"b,,", "text behind a quote"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(parse(rows[i][0]), KPACK_ERROR_INVALID_FORMAT);
		assert_has(why.text, rows[i][1]);
		record_fini(&r);
	}
}

TEST(test_write)
{
	struct record_text t = {0};

	assert_int_equal(parse("a,sha256=" NOTHING ",0"), 0);
	record_text_add(&t, "b \",\"", r.lines->digest, 12);
	record_text_end(&t, "x/RECORD");
	assert_true(kp_span_is((struct kp_span){(uint8_t *)t.text, t.size},
			       "\"b \"\",\"\"\",sha256=" NOTHING ",12\nx/RECORD,,\n"));
	record_text_fini(&t);
	record_fini(&r);
}
