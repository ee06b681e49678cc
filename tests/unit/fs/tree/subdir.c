/* SPDX-License-Identifier: MIT */
#include "fs/tree/subdir.h"
#include "tests/unit/unit.h"
#include <stdlib.h>

TEST(paths_are_cleaned)
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

	for (size_t i = 0; i < COUNT(paths); i++) {
		char *text = strdup(paths[i][0]);

		assert_non_null(text);
		assert_null(subdir_clean(text));
		assert_string_equal(text, paths[i][1]);
		free(text);
	}
}

TEST(paths_that_lead_out_are_refused)
{
	static const char *const paths[] = {"", "..", "../a", "a/..", "a/../b", "/../"};

	for (size_t i = 0; i < COUNT(paths); i++) {
		char *text = strdup(paths[i]);

		assert_non_null(text);
		assert_non_null(subdir_clean(text));
		free(text);
	}
}
