/* SPDX-License-Identifier: MIT */
#include "fs/base/printable.h"
#include <string.h>
#include "tests/unit/unit.h"

TEST(confusing_bytes_are_escaped)
{
	static const struct {
		const char *line, *printed;
	} rows[] = {
		{"", ""},
		{"plain: text", "plain: text"},
		{"a\tb\nc\033[2Jd", "a\\011b\\012c\\033[2Jd"},
		{"\302\233x \342\200\256y \377", "\\302\\233x \\342\\200\\256y \\377"},
		{"\303\244 \360\237\230\200", "\303\244 \360\237\230\200"},
		/* what is escaped already stays */
		{"\\033 \\\\ \\", "\\033 \\\\ \\"},
		{"\\\033\\", "\\\\033\\"},
	};
	char out[128];

	for (size_t i = 0; i < COUNT(rows); i++)
		assert_string_equal(printable_line(rows[i].line, out, sizeof(out)),
				    rows[i].printed);
}

TEST(long_lines_are_cut)
{
	const char line[] = "ab\\\\c\033d\\e";
	char out[32];

	for (size_t cap = 1; cap < sizeof(out); cap++) {
		memset(out, '#', sizeof(out));
		printable_line(line, out, cap);
		assert_true(strlen(out) < cap);
		assert_int_equal(out[cap], '#');
	}
}
