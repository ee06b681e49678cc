/* SPDX-License-Identifier: MIT */
#include "packer/library/rules.h"
#include "tests/unit/library_ask.h"
#include <unistd.h>
#include "tests/unit/unit.h"

static struct kpackx_error why;

static struct rules *rules_of(const char *text)
{
	struct rules *rules = NULL;

	if (rules_parse(kp_span_str(text), &rules, &why) != KPACK_SUCCESS)
		fail_msg("%s", why.text);
	return rules;
}

static void assert_wrong(const char *text, const char *words)
{
	struct rules *rules = NULL;

	assert_int_equal(rules_parse(kp_span_str(text), &rules, &why),
			 KPACK_ERROR_INVALID_ARGUMENT);
	if (!strstr(why.text, words))
		fail_msg("'%s', not '%s'", why.text, words);
	assert_null(rules);
}

/* --- reading ---------------------------------------------------------------------------- */

TEST(files_of_rules_are_read)
{
	struct rules *rules =
		rules_of("# my libraries\n"
			 "\n"
			 "foo  lib/foo/kernels\t*.co  directory  code # of it\r\n"
			 "  bar lib/bar/ *_[0-9]?.bin name\n"
			 "foo lib/foo/kernels *.idx generic index\n"
			 "baz . x#y gfx90a-xnack+");

	assert_int_equal(rules_count(rules), 3);
	assert_string_equal(rules_library(rules, 0)->name, "foo");
	assert_string_equal(rules_library(rules, 1)->name, "bar");
	assert_string_equal(rules_library(rules, 2)->name, "baz");
	assert_int_equal(((const struct rule_list *)rules_library(rules, 0)->data)->count,
			 2);
	rules_free(rules);
	rules_free(NULL);
	assert_int_equal(rules_count(NULL), 0);

	rules = rules_of("");
	assert_int_equal(rules_count(rules), 0);
	rules_free(rules);
	rules = rules_of("\n#\n \t\r\n");
	assert_int_equal(rules_count(rules), 0);
	rules_free(rules);
}

TEST(errors_name_line_and_word)
{
	assert_wrong("foo lib *.co", "line 1: '*.co' is the last word");
	assert_wrong("\n\nfoo", "line 3: 'foo' is the last word");
	assert_wrong("a b c name d e", "line 1: 'e' is one word too many");
	assert_wrong("a/b lib * name", "line 1: 'a/b' is no name of a library");
	assert_wrong("none lib * name", "'none' is no name of a library");
	assert_wrong("a,b lib * name", "'a,b'");
	assert_wrong("a /lib * name", "line 1: '/lib' is no directory");
	assert_wrong("a ../lib * name", "'../lib'");
	assert_wrong("a lib//x * name", "'lib//x'");
	assert_wrong("a / * name", "'/'");
	assert_wrong("a lib x/y name", "line 1: 'x/y' is no pattern");
	assert_wrong("a lib * nmae", "line 1: 'nmae' is none of directory, below");
	assert_wrong("a lib * gfx", "'gfx'");
	assert_wrong("a lib * gfx9999", "'gfx9999'");
	assert_wrong("a lib * gfx1100:xnack+", "'gfx1100:xnack+'");
	assert_wrong("a lib * sm_90", "'sm_90'");
	assert_wrong("a lib * name Role", "line 1: 'Role' is no role");
	assert_wrong("a lib * name\na lib \x01 name", "line 2: not UTF-8");
	assert_wrong("a lib \xff name", "line 1: not UTF-8");
	assert_wrong("a lib * name \033[31m", "line 1");
}

TEST(hostile_files_are_bounded)
{
	struct rules *rules = NULL;
	size_t n = (1 << 20) + 1, used = 0;
	char *text = malloc(n + 1);

	assert_non_null(text);
	memset(text, '#', n);
	text[n] = '\0';
	assert_wrong(text, "1048577 bytes of rules, limit 1048576");
	text[n - 1] = '\0';
	rules = rules_of(text);
	rules_free(rules);
	memset(text, 'a', n);
	memcpy(text + 5000, " lib * name", 12);
	assert_wrong(text, "is no name of a library");
	for (int i = 0; i < 1001; i++)
		used += (size_t)sprintf(text + used, "l%d lib * name\n", i);
	assert_wrong(text, "line 1001: more than 1000 rules");
	/* NUL bytes do not end a line */
	assert_int_equal(
		rules_parse((struct kp_span){(const uint8_t *)"a\0b", 3}, &rules, &why),
		KPACK_ERROR_INVALID_ARGUMENT);
	free(text);
}

TEST(rules_come_from_a_file)
{
	char name[] = "/tmp/kpack-rules-XXXXXX";
	int fd = mkstemp(name);
	struct rules *rules = NULL;

	assert_int_equal(write(fd, "a lib * name\n", 13), 13);
	assert_int_equal(rules_read(name, &rules, &why), KPACK_SUCCESS);
	assert_int_equal(rules_count(rules), 1);
	rules_free(rules);
	close(fd);
	unlink(name);
	assert_int_equal(rules_read(name, &rules, &why), KPACK_ERROR_FILE_NOT_FOUND);
	assert_int_equal(rules_read("/", &rules, &why), KPACK_ERROR_IO_ERROR);
}

/* --- files ------------------------------------------------------------------------------ */

/* "role arches", or "nobody's". */
static void assert_file(const struct library *l, const char *path, struct kp_span bytes,
			const char *want)
{
	struct asked a = ask(l, path, bytes.data, bytes.size);
	char have[500] = "nobody's";

	assert_int_equal(a.err, 0);
	if (a.mine)
		snprintf(have, sizeof(have), "%s %s", a.object.role, asked_arches(&a));
	if (strcmp(have, want) != 0)
		fail_msg("%s: '%s', not '%s'", path, have, want);
	asked_fini(&a);
}

TEST(rules_fit_files)
{
	static const struct {
		const char *path, *want;
	} files[] = {
		{"opt/lib/foo/kernels/gfx942/x.co", "code gfx942"},
		{"lib/foo/kernels/gfx942/deep/x.co", "code gfx942"},
		{"lib/foo/kernels/sub/gfx942/x.co", "nobody's"},
		{"lib/foo/kernels/x.co", "nobody's"},
		{"lib/foo/kernels/gfx942", "nobody's"},
		{"lib/foo/kernels/x.idx", "index generic"},
		{"lib/foo/kernelsx/x.idx", "nobody's"},
		{"xlib/foo/kernels/x.idx", "nobody's"},
		{"lib/foo/kernels/x.txt", "nobody's"},
		{"lib/foo/named/x_gfx90a-xnack-.bin", "file gfx90a:xnack-"},
		{"lib/foo/named/x.bin", "nobody's"},
		{"lib/foo/deep/a/b/gfx11-generic/c/x", "file gfx11-generic"},
		{"lib/foo/deep/a/b/x_gfx942", "nobody's"},
		{"lib/foo/fixed/x", "file gfx1100"},
		{"lib/foo/code/x.txt", "nobody's"},
		{"top_gfx942.one", "one gfx942"},
		{"a/b/top_gfx942.one", "one gfx942"},
	};
	struct rules *rules = rules_of("foo lib/foo/kernels *.co directory code\n"
				       "foo lib/foo/kernels *.idx generic index\n"
				       "foo lib/foo/named * name\n"
				       "foo lib/foo/deep * below\n"
				       "foo lib/foo/fixed * gfx1100\n"
				       "foo lib/foo/code * content\n"
				       "foo . *.one name one\n");
	const struct library *foo = rules_library(rules, 0);

	for (size_t i = 0; i < COUNT(files); i++)
		assert_file(foo, files[i].path, kp_span_str("text"), files[i].want);
	rules_free(rules);
}

TEST(the_content_of_code_objects_counts)
{
	struct rules *rules = rules_of("foo lib/foo * content code\n"
				       "foo lib/foo *.co name late\n"
				       "bar lib/bar * gfx942\n"
				       "all lib/all * generic\n");
	uint8_t co[4096];
	struct asked a;

	memset(co, 0, sizeof(co));
	memcpy(co, "\177ELF\2\1\1\100\4", 9);
	co[16] = 3;
	co[18] = 224;
	co[20] = 1;
	co[52] = 64;
	kp_put_le32(co + 48, 0x53f);
	assert_file(rules_library(rules, 0), "lib/foo/x",
		    (struct kp_span){co, sizeof(co)}, "code gfx90a");
	/* falls through to the next matching line */
	assert_file(rules_library(rules, 0), "lib/foo/x_gfx942.co", kp_span_str("text"),
		    "late gfx942");
	assert_file(rules_library(rules, 2), "lib/all/x",
		    (struct kp_span){co, sizeof(co)}, "file generic");
	a = ask(rules_library(rules, 1), "lib/bar/x", co, sizeof(co));
	assert_string_equal(asked_arches(&a), "gfx90a");
	assert_non_null(a.object.warning);
	asked_fini(&a);
	rules_free(rules);
}

TEST(names_that_contradict_directories_are_reported)
{
	static const struct {
		const char *name, *arch;
		bool warned;
	} files[] = {
		{"x.bin", "gfx942", false},
		{"x_gfx942.bin", "gfx942", false},
		{"x_gfx950.bin", "gfx942", true},
		{"x_gfx9-4-generic.bin", "gfx942", false},
	};
	char path[100];

	for (size_t i = 0; i < COUNT(files); i++) {
		struct asked a;

		snprintf(path, sizeof(path), "engines/arch_content/gfx942/%s",
			 files[i].name);
		a = ask(&library_hipkernelprovider, path, "text", 4);
		assert_string_equal(asked_arches(&a), files[i].arch);
		if (!a.object.warning != !files[i].warned)
			fail_msg("%s: %s", path, a.object.warning);
		asked_fini(&a);
	}
}

TEST(databases_of_rules_are_read_at_random)
{
	struct rules *rules = rules_of("foo lib * generic");
	struct asked a = ask(rules_library(rules, 0), "lib/x", "SQLite format 3", 16);

	assert_true(a.mine && a.object.at_random);
	asked_fini(&a);
	a = ask(rules_library(rules, 0), "lib/x", "text", 4);
	assert_true(a.mine && !a.object.at_random);
	asked_fini(&a);
	rules_free(rules);
}

/* --- libraries defined by rules ----------------------------------------------------------- */

TEST(libraries_of_rules_know_their_files)
{
	static const struct {
		const struct library *library;
		const char *path, *want;
	} files[] = {
		{&library_hipkernelprovider,
		 "lib/hipdnn_plugins/engines/hip_kernel_provider/asm_kernels/gfx942/"
		 "fmha_v3_fwd/MI300/fwd_hd128_bf16_rtne.co",
		 "provider gfx942"},
		{&library_hipkernelprovider,
		 "lib/hipdnn_plugins/engines/arch_content/rocke/gfx90a-xnack+/m.json",
		 "provider gfx90a:xnack+"},
		{&library_hipkernelprovider, "engines/arch_content/gfx1250-strict/m.json",
		 "provider gfx1250"},
		{&library_hipkernelprovider, "engines/test_arch_content/p/gfx942/x",
		 "provider gfx942"},
		{&library_hipkernelprovider, "x/hipdnn_plugins/engines/new/gfx950/x",
		 "provider gfx950"},
		{&library_hipkernelprovider, "engines/arch_content/rocke/index.json",
		 "nobody's"},
		{&library_hipkernelprovider, "arch_content/gfx942/x", "nobody's"},
		{&library_hipkernelprovider, "engines/arch_content/gfx942", "nobody's"},
		{&library_aiter, "aiter_meta/hsa/gfx1151/fmha/x.co", "code gfx1151"},
		{&library_aiter, "aiter_meta/hsa/gfx942/x.csv", "file gfx942"},
		{&library_aiter, "aiter_meta/hsa/x.csv", "nobody's"},
		{&library_hotswap_cache,
		 "share/rocjitsu/translations/gfx1250-b0-a0/v1/01ef.man",
		 "manifest gfx1250"},
		{&library_hotswap_cache,
		 "share/rocjitsu/translations/gfx1250-b0-a0/v1/01ef.obj", "code gfx1250"},
		{&library_hotswap_cache, "share/rocjitsu/translations/gfx942/v1/01ef.obj",
		 "nobody's"},
	};
	uint8_t elf[64] = "\177ELF\2\1\1";

	for (size_t i = 0; i < COUNT(files); i++)
		assert_file(files[i].library, files[i].path, kp_span_str("text"),
			    files[i].want);
	elf[18] = 62;
	assert_file(&library_hipkernelprovider, "engines/arch_content/gfx942/plugin.so",
		    (struct kp_span){elf, sizeof(elf)}, "nobody's");
}

TEST(a_steppings_directory_is_reported)
{
	struct asked a = ask(&library_hipkernelprovider,
			     "engines/arch_content/gfx1250-strict/m.json", "{}", 2);

	assert_facts(&a.object.facts,
		     "{\"container\":\"text\",\"variant\":\"gfx1250-strict\"}");
	assert_null(a.object.warning);
	asked_fini(&a);
}
