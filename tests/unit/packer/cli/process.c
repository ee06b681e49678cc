/* SPDX-License-Identifier: MIT */
#include "packer/cli/process.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/text.h"

static const char *const words[] = {
	"",
	"plain",
	"/a_b/c@d+e=f:g,h.i-j",
	"a b",
	"$(x)`y`\"z\"",
	"it's",
	"a\nb'\\c\t",
	"-n",
	"~",
	"*",
	"\xef\xbc\x8a@^,",
	"#",
	"a\\b",
	"!x",
	"%s%%\033[31m%1$s\\0",
	"-n\033",
	"--\033",
	"\177",
	"\302\233m",
	"a\342\200\256b",
	"\363\240\201\201",
	"\377\376",
	"\n",
	"a\n\n",
	"it's\033\n",
	"\r",
};

/* A shell expands WORD, which is freed, to TEXT. */
static void check_word(char *word, const char *text)
{
	char *command, got[64];
	size_t n;
	FILE *f;

	assert_true(asprintf(&command, "printf %%s %s", word) > 0);
	assert_int_equal(setenv("X", command, 1), 0);
	f = popen("exec sh -c \"$X\"", "r");
	assert_non_null(f);
	n = fread(got, 1, sizeof(got) - 1, f);
	got[n] = 0;
	assert_int_equal(pclose(f), 0);
	assert_string_equal(got, text);
	free(command);
	free(word);
}

TEST(shells_read_the_original)
{
	for (size_t i = 0; i < COUNT(words); i++)
		check_word(shell_word(words[i]), words[i]);
}

/* A terminal shows all of it, but for the newlines at its end. */
TEST(terminals_show_it)
{
	for (size_t i = 0; i < COUNT(words); i++) {
		char *word = shell_word(words[i]);
		size_t ends = 0, seen = 0, n;

		for (const char *p = word; *p; p += n) {
			uint32_t c;

			n = kp_text_char(kp_span_str(p), &c);
			assert_true(n && (c == '\n' || kp_text_visible(c)));
			seen += c == '\n';
		}
		for (n = strlen(words[i]); n && words[i][n - 1] == '\n'; n--)
			ends++;
		assert_int_equal(seen, ends);
		free(word);
	}
}
