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

static const struct {
	struct kp_span in;
	const char *escaped;
	bool ok;
} texts[] = {
	{BYTES(""), "", true},
	{BYTES("plain text #1 ~"), "plain text #1 ~", true},
	/* the limits of each length */
	{BYTES("\302\240"), "\302\240", true},                 /* U+00A0 */
	{BYTES("\337\277"), "\337\277", true},                 /* U+07FF */
	{BYTES("\340\240\200"), "\340\240\200", true},         /* U+0800 */
	{BYTES("\355\237\277"), "\355\237\277", true},         /* U+D7FF */
	{BYTES("\356\200\200"), "\356\200\200", true},         /* U+E000 */
	{BYTES("\357\277\277"), "\357\277\277", true},         /* U+FFFF */
	{BYTES("\360\220\200\200"), "\360\220\200\200", true}, /* U+10000 */
	{BYTES("\364\217\277\277"), "\364\217\277\277", true}, /* U+10FFFF */
	/* controls */
	{BYTES("\0"), "\\000", false},
	{BYTES("a\0b"), "a\\000b", false},
	{BYTES("a\nb\tc\r"), "a\\012b\\011c\\015", false},
	{BYTES("\033[31m"), "\\033[31m", false},
	{BYTES("\037 "), "\\037 ", false},
	{BYTES("~\177"), "~\\177", false},
	{BYTES("\302\200"), "\\302\\200", false}, /* U+0080 */
	{BYTES("\302\233m"), "\\302\\233m", false},
	{BYTES("\302\237"), "\\302\\237", false}, /* U+009F */
	/* not UTF-8 */
	{BYTES("\200"), "\\200", false},
	{BYTES("\377\376"), "\\377\\376", false},
	{BYTES("\300\257"), "\\300\\257", false},                   /* '/', overlong */
	{BYTES("\301\277"), "\\301\\277", false},                   /* U+007F, overlong */
	{BYTES("\340\237\277"), "\\340\\237\\277", false},          /* U+07FF, overlong */
	{BYTES("\360\217\277\277"), "\\360\\217\\277\\277", false}, /* U+FFFF, overlong */
	{BYTES("\355\240\200"), "\\355\\240\\200", false},          /* U+D800 */
	{BYTES("\355\277\277"), "\\355\\277\\277", false},          /* U+DFFF */
	{BYTES("\364\220\200\200"), "\\364\\220\\200\\200", false}, /* U+110000 */
	{BYTES("\365\200\200\200"), "\\365\\200\\200\\200", false},
	{BYTES("\370\210\200\200\200"), "\\370\\210\\200\\200\\200", false},
	{BYTES("\303"), "\\303", false},
	{BYTES("\342\202"), "\\342\\202", false},
	{BYTES("\360\237\230"), "\\360\\237\\230", false},
	{BYTES("\303x"), "\\303x", false},
	{BYTES("\342\202\303\266"), "\\342\\202\303\266", false},
	/* valid in a name, but shown escaped */
	{BYTES("a\\b"), "a\\134b", true},
	{BYTES("\\012"), "\\134012", true},
	{BYTES("\330\234"), "\\330\\234", true},            /* U+061C */
	{BYTES("\342\200\212"), "\342\200\212", true},      /* U+200A */
	{BYTES("\342\200\213"), "\\342\\200\\213", true},   /* U+200B */
	{BYTES("\342\200\217"), "\\342\\200\\217", true},   /* U+200F */
	{BYTES("\342\200\220"), "\342\200\220", true},      /* U+2010 */
	{BYTES("\342\200\247"), "\342\200\247", true},      /* U+2027 */
	{BYTES("\342\200\250"), "\\342\\200\\250", true},   /* U+2028 */
	{BYTES("\342\200\251"), "\\342\\200\\251", true},   /* U+2029 */
	{BYTES("\342\200\252"), "\\342\\200\\252", true},   /* U+202A */
	{BYTES("\342\200\256"), "\\342\\200\\256", true},   /* U+202E */
	{BYTES("\342\200\257"), "\342\200\257", true},      /* U+202F */
	{BYTES("\342\201\237"), "\342\201\237", true},      /* U+205F */
	{BYTES("\342\201\240"), "\\342\\201\\240", true},   /* U+2060 */
	{BYTES("\342\201\245"), "\\342\\201\\245", true},   /* U+2065 */
	{BYTES("\342\201\246"), "\\342\\201\\246", true},   /* U+2066 */
	{BYTES("\342\201\251"), "\\342\\201\\251", true},   /* U+2069 */
	{BYTES("\342\201\252"), "\\342\\201\\252", true},   /* U+206A */
	{BYTES("\342\201\257"), "\\342\\201\\257", true},   /* U+206F */
	{BYTES("\342\201\260"), "\342\201\260", true},      /* U+2070 */
	{BYTES("\357\273\277x"), "\\357\\273\\277x", true}, /* U+FEFF */
	/* invisible */
	{BYTES("\302\254"), "\302\254", true},                     /* U+00AC */
	{BYTES("\302\255"), "\\302\\255", true},                   /* U+00AD */
	{BYTES("\302\256"), "\302\256", true},                     /* U+00AE */
	{BYTES("\315\217"), "\\315\\217", true},                   /* U+034F */
	{BYTES("\341\205\237"), "\\341\\205\\237", true},          /* U+115F */
	{BYTES("\341\236\265"), "\\341\\236\\265", true},          /* U+17B5 */
	{BYTES("\341\240\216"), "\\341\\240\\216", true},          /* U+180E */
	{BYTES("\343\205\244"), "\\343\\205\\244", true},          /* U+3164 */
	{BYTES("\357\270\217"), "\\357\\270\\217", true},          /* U+FE0F */
	{BYTES("\357\276\240"), "\\357\\276\\240", true},          /* U+FFA0 */
	{BYTES("\357\277\273"), "\\357\\277\\273", true},          /* U+FFFB */
	{BYTES("\357\277\274"), "\357\277\274", true},             /* U+FFFC */
	{BYTES("\360\235\205\263"), "\\360\\235\\205\\263", true}, /* U+1D173 */
	{BYTES("\363\240\201\201"), "\\363\\240\\201\\201", true}, /* U+E0041 */
	{BYTES("\363\240\277\277"), "\\363\\240\\277\\277", true}, /* U+E0FFF */
	{BYTES("\363\241\200\200"), "\363\241\200\200", true},     /* U+E1000 */
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

/* Whatever byte ends it, and wherever. */
TEST(plain_text_is_measured)
{
	uint8_t text[20];
	struct kp_span s = {text, sizeof(text)};

	memset(text, 'a', sizeof(text));
	assert_int_equal(kp_text_plain(s), s.size);
	assert_int_equal(kp_text_plain((struct kp_span){0}), 0);
	for (size_t at = 0; at < s.size; at++) {
		for (int c = 0; c < 256; c++) {
			bool plain = c >= ' ' && c < 0x7f && c != '\\';

			text[at] = (uint8_t)c;
			assert_int_equal(kp_text_plain(s), plain ? s.size : at);
		}
		text[at] = (uint8_t)(at % 2 ? '~' : ']'); /* beside others */
	}
}

TEST(escapes_become_their_bytes)
{
	char text[] = "a\\040b\\134040\\08\\\\060c\\377\\", plain[] = "";

	kp_text_unescape(text);
	assert_string_equal(text, "a b\\040\\08\\0c\377\\");
	kp_text_unescape(plain);
	assert_string_equal(plain, "");
	for (size_t i = 0; i < COUNT(texts); i++) {
		char *escaped = kp_text_escape_new(texts[i].in);

		assert_non_null(escaped);
		kp_text_unescape(escaped);
		if (!memchr(texts[i].in.data, '\0', texts[i].in.size)) {
			assert_int_equal(strlen(escaped), texts[i].in.size);
			assert_memory_equal(escaped, texts[i].in.data, texts[i].in.size);
		}
		free(escaped);
	}
}

/* A message is escaped but for its backslashes, which are those of escaped names. */
TEST(messages_keep_their_backslashes)
{
	char out[64], twice[64], *whole;

	for (size_t i = 0; i < COUNT(texts); i++) {
		kp_message_escape(kp_span_str(texts[i].escaped), out, sizeof(out));
		assert_string_equal(out, texts[i].escaped);
		kp_message_escape(texts[i].in, out, sizeof(out));
		if (!memchr(texts[i].in.data, '\\', texts[i].in.size))
			assert_string_equal(out, texts[i].escaped);
		kp_message_escape(kp_span_str(out), twice, sizeof(twice));
		assert_string_equal(out, twice);
		whole = kp_message_escape_new(texts[i].in);
		assert_string_equal(whole, out);
		free(whole);
	}
	kp_message_escape(kp_span_str("a\\b\n\\012"), out, sizeof(out));
	assert_string_equal(out, "a\\b\\012\\012");
}

/* With every buffer size, no byte too many is written and no character is split. */
TEST(escapes_are_cut_at_a_character)
{
	static const struct kp_span in = BYTES("a\nb\303\266\342\200\250c");
	static const char *const cut[] = {
		"",  "",       "a",       "a",       "a",
		"a", "a\\012", "a\\012b", "a\\012b", "a\\012b\303\266"};
	static const char whole[] = "a\\012b\303\266\\342\\200\\250c";
	char out[64];

	for (size_t cap = 1; cap < sizeof(out); cap++) {
		memset(out, '#', sizeof(out));
		kp_text_escape(in, out, cap);
		assert_true(strlen(out) < cap);
		for (size_t i = cap; i < sizeof(out); i++)
			assert_int_equal(out[i], '#');
		if (cap < COUNT(cut))
			assert_string_equal(out, cut[cap]);
		else if (cap < sizeof(whole) - 1)
			assert_string_equal(out, "a\\012b\303\266");
		else if (cap >= sizeof(whole))
			assert_string_equal(out, whole);
	}
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
