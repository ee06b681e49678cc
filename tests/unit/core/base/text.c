/* SPDX-License-Identifier: MIT */
#include "core/base/bounds.h"
#include "core/base/text.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>

/* A literal that may contain NULs, without its final NUL. */
#define BYTES(text)                                                                      \
	{                                                                                \
		(const uint8_t *)(text), sizeof(text) - 1                                \
	}

/* All limits of UTF-8, and of what is seen, are in jsoncheck.py, with which json.c compares. */
static const struct {
	struct kp_span in;
	const char *escaped;
	bool ok;
} texts[] = {
	{BYTES(""), "", true},
	{BYTES("plain text #1 ~"), "plain text #1 ~", true},
	{BYTES("\302\240"), "\302\240", true}, /* U+00A0 */
	{BYTES("a\0b"), "a\\000b", false},
	{BYTES("a\nb\tc\r"), "a\\012b\\011c\\015", false},
	{BYTES("\033[31m"), "\\033[31m", false},
	{BYTES("\037 "), "\\037 ", false},
	{BYTES("~\177"), "~\\177", false},
	{BYTES("\302\200"), "\\302\\200", false}, /* U+0080 */
	{BYTES("\302\237"), "\\302\\237", false}, /* U+009F */
	/* not UTF-8: the byte alone, and what follows it as it is */
	{BYTES("\355\240\200"), "\\355\\240\\200", false}, /* U+D800 */
	{BYTES("\303x"), "\\303x", false},
	{BYTES("\342\202\303\266"), "\\342\\202\303\266", false},
	/* valid in a name, but shown escaped */
	{BYTES("\\012"), "\\134012", true},
	{BYTES("\342\200\256"), "\\342\\200\\256", true},          /* U+202E */
	{BYTES("\363\240\201\201"), "\\363\\240\\201\\201", true}, /* U+E0041 */
	/* ordinary text */
	{BYTES("\303\244\346\274\242\360\237\230\200"),
	 "\303\244\346\274\242\360\237\230\200", true},
};

TEST(utf8_is_checked_strictly)
{
	for (size_t i = 0; i < COUNT(texts); i++)
		if (kp_text_ok(texts[i].in) != texts[i].ok)
			fail_msg("row %zu: %s", i, texts[i].escaped);
	assert_true(kp_text_ok((struct kp_span){NULL, 0}));
}

TEST(terminals_get_octal_instead_of_surprises)
{
	char out[64];

	for (size_t i = 0; i < COUNT(texts); i++) {
		char *whole = kp_text_escape_new(texts[i].in);

		assert_non_null(whole);
		assert_string_equal(whole, texts[i].escaped);
		assert_ptr_equal(kp_text_escape(texts[i].in, out, sizeof(out)), out);
		assert_string_equal(out, texts[i].escaped);
		assert_true(kp_text_ok(kp_span_str(out)));
		free(whole);
	}
}

TEST(escapes_become_their_bytes)
{
	char text[] = "a\\040b\\134040\\08\\\\060c\\377\\", plain[] = "";

	kp_text_unescape(text);
	assert_string_equal(text, "a b\\040\\08\\0c\377\\");
	kp_text_unescape(plain);
	assert_string_equal(plain, "");
}

/* A message is escaped but for its backslashes, which are those of escaped names. */
TEST(messages_keep_their_backslashes)
{
	char out[64];

	kp_message_escape(kp_span_str("a\\b\n\\012"), out, sizeof(out));
	assert_string_equal(out, "a\\b\\012\\012");
}

TEST(paths_have_limits)
{
	uint8_t path[KP_NAME_MAX + 1];

	for (size_t i = 0; i < sizeof(path); i++)
		path[i] = i % 2 ? '/' : 'x';
	assert_true(kp_path_ok((struct kp_span){path, 2 * KP_PATH_DEPTH_MAX - 1}));
	assert_false(kp_path_ok((struct kp_span){path, 2 * KP_PATH_DEPTH_MAX + 1}));
	path[KP_NAME_MAX] = '\0';
	assert_false(kp_path_inside((const char *)path));
	path[KP_NAME_MAX - 1] = 'x';
	assert_true(kp_path_inside((const char *)path));
	for (size_t i = 0; i < sizeof(path); i++)
		path[i] = i % 100 == 99 ? '/' : 'x';
	assert_true(kp_path_ok((struct kp_span){path, KP_NAME_MAX}));
	assert_false(kp_path_ok((struct kp_span){path, KP_NAME_MAX + 1}));
	memset(path, 'x', sizeof(path));
	assert_true(kp_path_ok((struct kp_span){path, 255}));
	assert_false(kp_path_ok((struct kp_span){path, 256}));
}
