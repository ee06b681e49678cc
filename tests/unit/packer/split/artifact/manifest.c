/* SPDX-License-Identifier: MIT */
/*
 * The manifest of an artifact: which lines are prefixes, and which line a refusal names.
 */
#include <string.h>
#include "tests/unit/unit.h"
#include "packer/split/artifact/manifest.h"

static void expect(const char *text, const char *const *paths)
{
	struct kpackx_error why = {0};
	struct prefixes p;
	size_t n = 0;

	assert_int_equal(prefixes_parse(kp_span_str(text), &p, &why), KPACK_SUCCESS);
	for (; paths[n]; n++) {
		assert_true(n < p.count);
		assert_string_equal(p.items[n].path, paths[n]);
		assert_true(prefixes_has(&p, paths[n]));
	}
	assert_int_equal(p.count, n);
	assert_false(prefixes_has(&p, "elsewhere"));
	prefixes_close(&p);
}

TEST(test_lines)
{
	expect("a", (const char *const[]){"a", NULL});
	expect("\n b/c \r\n\n\ta//", (const char *const[]){"b/c", "a", NULL});
	/* dots and hyphens sort before slashes; the manifest's order is kept */
	expect("a/b\na.b\na-b\n", (const char *const[]){"a/b", "a.b", "a-b", NULL});
}

static void refuse(const char *text, const char *reason)
{
	struct kpackx_error why = {0};
	struct prefixes p;

	assert_int_equal(prefixes_parse(kp_span_str(text), &p, &why),
			 KPACK_ERROR_INVALID_FORMAT);
	assert_has(why.text, reason);
	assert_null(p.items);
}

TEST(test_refused)
{
	refuse("", "no prefix");
	refuse("\n \n", "no prefix");
	refuse("a\n/etc\n", "line 2");
	refuse("a\n../b\n", "line 2");
	refuse("a/./b", "line 1");
	refuse(".", "line 1");
	refuse("a/\nb\na\n", "a: is listed twice");
	refuse("a\na-b\na.c\na/b\n", "a/b: is inside another prefix, a");
	refuse("\xff", "line 1");
}
