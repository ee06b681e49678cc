/* SPDX-License-Identifier: MIT */
#include "fs/tree/subdir.h"
#include "tests/unit/unit.h"
#include <stdlib.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void paths_are_cleaned(void **state)
{
	static const char *const paths[][2] = {
		{"lib", "lib"},
		{"/lib", "lib"},
		{"lib/", "lib"},
		{"//a///b//", "a/b"},
		{"./a/./b/.", "a/b"},
		{"/", ""},
		{".", ""},
		{"...", "..."},
		{"..a/b..", "..a/b.."},
		{".a", ".a"},
		{"a b/c,d", "a b/c,d"},
		{"a/.b", "a/.b"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(paths); i++) {
		char *text = strdup(paths[i][0]);

		assert_non_null(text);
		assert_null(subdir_clean(text));
		assert_string_equal(text, paths[i][1]);
		free(text);
	}
}

static void paths_that_lead_out_are_refused(void **state)
{
	static const char *const paths[] = {"", "..", "../a", "a/..", "a/../b", "/../"};

	(void)state;
	for (size_t i = 0; i < COUNT(paths); i++) {
		char *text = strdup(paths[i]);

		assert_non_null(text);
		assert_non_null(subdir_clean(text));
		free(text);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(paths_are_cleaned),
	cmocka_unit_test(paths_that_lead_out_are_refused),
};

SUITE(tests, NULL, NULL);
