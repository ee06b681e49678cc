/* SPDX-License-Identifier: MIT */
#include "packer/wheel/metadata/text.h"
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"

static struct kpackx_error why;
static struct metadata_text m;

static kpack_error_t parse(const char *text)
{
	why = (struct kpackx_error){0};
	return metadata_text_parse(kp_span_str(text), &m, &why);
}

static bool is(const char *name, size_t i, const char *want)
{
	struct kp_span value;
	size_t at = 0;

	if (i == 0 && (!metadata_text_get(&m, name, &value) || !kp_span_is(value, want)))
		return false;
	do
		if (!metadata_text_next(&m, name, &at, &value))
			return false;
	while (i--);
	return kp_span_is(value, want);
}

TEST(test_headers)
{
	assert_int_equal(
		parse("Name:  x \nTag: a\nLicense: one\n  two\ntag: b\n\nTag: c\n"), 0);
	assert_true(is("name", 0, "x"));
	assert_true(is("Tag", 0, "a") && is("Tag", 1, "b") && !is("Tag", 2, "c"));
	assert_true(is("License", 0, "one\n  two"));
	assert_false(is("Nam", 0, "x"));
	metadata_text_fini(&m);
}

/* Adding or setting NAME gives WANT. */
static void gives(const char *text, const char *name, const char *value, const char *want)
{
	char *out;
	size_t size;

	assert_int_equal(parse(text), 0);
	out = name ? metadata_text_set(&m, name, value, &size)
		   : metadata_text_add(&m, value, &size);
	assert_string_equal(out, want);
	assert_int_equal(size, strlen(want));
	free(out);
	metadata_text_fini(&m);
}

TEST(test_edit)
{
	gives("N: x\n\nText\n", NULL, "A: 1\nB: 2\n", "N: x\nA: 1\nB: 2\n\nText\n");
	gives("N: x\r\n\r\nText\r\n", NULL, "A: 1\n", "N: x\r\nA: 1\r\n\r\nText\r\n");
	gives("N: x", NULL, "A: 1\n", "N: x\nA: 1\n");
	gives("N: x\n", NULL, "A: 1\n", "N: x\nA: 1\n");
	gives("", NULL, "A: 1\n", "A: 1\n");
	gives("N: x\nV: 1\n  more\nT: 2\n\nV: 3\n", "v", "9",
	      "N: x\nv: 9\nT: 2\n\nV: 3\n");
	gives("N: x\nV: 1\n more\n", "V", "9", "N: x\nV: 9\n");
	gives("N: x\n\nT", "V", "9", "N: x\nV: 9\n\nT");
}

TEST(test_refused)
{
	static const char *const texts[] = {
		" x\n",         "no header\n",       ": x\n",    "a b: c\n",
		"Name: \xff\n", "Name: x\rTag: y\n", "Name: x\r"};

	for (size_t i = 0; i < COUNT(texts); i++) {
		assert_int_equal(parse(texts[i]), KPACK_ERROR_INVALID_FORMAT);
		assert_true(why.text[0]);
		metadata_text_fini(&m);
	}
	assert_int_equal(metadata_text_parse(
				 (struct kp_span){(const uint8_t *)"N: \0", 4}, &m, &why),
			 KPACK_ERROR_INVALID_FORMAT);
}
