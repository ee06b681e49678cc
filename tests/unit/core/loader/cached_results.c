/* SPDX-License-Identifier: MIT */
/* Lists of architectures and kernels, and metadata: results that an archive caches. */
#include "core/loader/api_state.h"
#include "tests/unit/archive_builder.h"
#include "core/base/bounds.h"
#include "core/rocm_kpack/kpack.h"
#include "core/rocm_kpack/kpackx.h"
#include "tests/unit/unit.h"

/* An archive of empty objects; each string is "KEY ARCH". */
static kpack_archive_t with_keys(const char *const *keys, size_t n)
{
	char toc[32768] = "", key[128], arch[128];
	struct ab a = ab_new(64);

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(sscanf(keys[i], "%127s %127s", key, arch), 2);
		snprintf(toc + strlen(toc), 300, "'%s': {'%s': @0}, ", key, arch);
	}
	ab_toc(&a, "{'blobs': [{'offset': 64, 'size': 0}], 'toc': {%s}}", toc);
	return ab_opened(&a);
}

/* --- kernels -------------------------------------------------------------------------- */

/* WANT: the names, each followed by a space. */
static void check_list(kpack_archive_t archive, const char *name, const char *arch,
		       const char *want)
{
	const char **names = NULL, **again = NULL;
	char have[4096] = "";
	size_t n = 99;

	assert_int_equal(kpack_list_kernels(archive, name, arch, &names, &n),
			 KPACK_SUCCESS);
	for (size_t i = 0; i < n; i++) {
		size_t entry;

		strcat(strcat(have, names[i]), " ");
		assert_int_equal(kpackx_find_entry(archive, names[i], arch, &entry),
				 KPACK_SUCCESS);
	}
	if (strcmp(have, want) != 0)
		fail_msg("%s for %s: %s", name, arch, have);
	assert_null(names[n]);
	assert_int_equal(kpack_list_kernels(archive, name, arch, &again, &n),
			 KPACK_SUCCESS);
	assert_ptr_equal(names, again);
}

TEST(kernels_of_a_binary_are_listed)
{
	static const char *const keys[] = {
		"lib/x x",       "lib/x#0 x",          "lib/x#0 y",
		"lib/x#1 y",     "lib/x#10 x",         "lib/x#2 x",
		"lib/x#9 x",     "lib/x!y#0 x",        "lib/x-y#0 x",
		"lib/x.so#0 x",  "lib/x.so#0 y",       "lib/x/a#0 x",
		"lib/x/a#10 x",  "lib/x/a#2 x",        "lib/x/b/c x",
		"lib/x0 x",      "lib/x#4294967295 x", "lib/x#01 x",
		"lib/x#2/z#0 x", "lib/x#4294967296 x", "lib/y#0 y",
		"z x",           "\xc3\xa4#0 y",       "\xc3\xa4#10 y",
		"\xc3\xa4#2 y",  "\xc3\xa4/k y",
	};
	static const struct {
		const char *name, *arch, *want;
	} cases[] = {
		{"\xc3\xa4", "y", "\xc3\xa4#0 \xc3\xa4#2 \xc3\xa4#10 \xc3\xa4/k "},
		{"\xc3", "y", ""},
		{"\xff\xff", "y", ""},
		{"lib/x", "x",
		 "lib/x lib/x#0 lib/x#2 lib/x#9 lib/x#10 lib/x#4294967295 lib/x/a#0 "
		 "lib/x/a#2 lib/x/a#10 lib/x/b/c "},
		{"lib/x", "y", "lib/x#0 lib/x#1 "},
		{"lib/x", "z", ""},
		{"lib/x", "hsaco", ""}, /* in the string table, but no architecture */
		{"lib/x", "", ""},
		{"lib/x.so", "x", "lib/x.so#0 "},
		{"lib/x.so#0", "y", "lib/x.so#0 "},
		{"lib/x/a", "x", "lib/x/a#0 lib/x/a#2 lib/x/a#10 "},
		{"lib/x/", "x", ""},
		{"lib/x#2", "x", "lib/x#2 lib/x#2/z#0 "},
		{"lib/x-y", "x", "lib/x-y#0 "},
		{"lib/", "x", ""},
		{"li", "x", ""},
		{"lib/xx", "x", ""},
		{"zz", "x", ""},
		{"z", "x", "z "},
		{"lib", "y", "lib/x#0 lib/x#1 lib/x.so#0 lib/y#0 "},
		{"", "y",
		 "lib/x#0 lib/x#1 lib/x.so#0 lib/y#0 \xc3\xa4#0 \xc3\xa4#2 \xc3\xa4#10 "
		 "\xc3\xa4/k "},
		{"", "x",
		 "lib/x lib/x!y#0 lib/x#0 lib/x#2 lib/x#9 lib/x#10 lib/x#4294967295 "
		 "lib/x#01 lib/x#2/z#0 lib/x#4294967296 lib/x-y#0 lib/x.so#0 lib/x/a#0 "
		 "lib/x/a#2 lib/x/a#10 lib/x/b/c lib/x0 z "},
	};
	kpack_archive_t archive = with_keys(keys, COUNT(keys));

	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < COUNT(cases); i++)
			check_list(archive, cases[i].name, cases[i].arch, cases[i].want);
	kpack_close(archive);
}

/* --- metadata ------------------------------------------------------------------------- */

TEST(metadata_is_json)
{
	static const struct {
		const char *name, *arch, *want;
	} cases[] = {
		{"lib/x.so", "gfx942",
		 "{\"binary\":\"lib/"
		 "x.so#0\",\"arch\":\"gfx942\",\"type\":\"co\",\"ordinal\":1,\"original_"
		 "size\":3,\"stored_size\":3,\"metadata\":{\"path\":\"a\\\"b\",\"xxh3\":"
		 "\"00ff\",\"n\":{\"5\":[null,-1,1.5]}}}"},
		{"lib/x.so#0", "gfx90a",
		 "{\"binary\":\"lib/"
		 "x.so#0\",\"arch\":\"gfx90a\",\"type\":\"hsaco\",\"ordinal\":0,"
		 "\"original_size\":4,\"stored_size\":4}"},
		{"lib/x.so#1", "gfx90a",
		 "{\"binary\":\"lib/"
		 "x.so#1\",\"arch\":\"gfx90a\",\"type\":\"hsaco\",\"ordinal\":0,"
		 "\"original_size\":4,\"stored_size\":4,\"metadata\":{}}"},
		{"b/gfx900/k", "gfx900",
		 "{\"binary\":\"b/gfx900/"
		 "k\",\"arch\":\"gfx900\",\"type\":\"hsaco\",\"ordinal\":1,\"original_"
		 "size\":3,\"stored_size\":3}"},
	};
	struct ab a = ab_new(64);
	kpack_archive_t archive;

	ab_put(&a, "0123012", 7);
	ab_toc(&a, "{'blobs': [{'offset': 64, 'size': 4}, {'offset': 68, 'size': 3}], "
		   "'toc': {'lib/x.so#0': {'gfx90a': @0, 'gfx942': {'ordinal': 1, "
		   "'type': 'co', 'metadata': {'path': 'a\"b', 'path': 'second', 'xxh3': "
		   "x'00ff', 'n': {5: [nil, -1, 1.5]}}}}, 'lib/x.so#1': {'gfx90a': "
		   "{'metadata': {}, 'ordinal': 0}}, 'b/gfx900/k': @1}}");
	archive = ab_opened(&a);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < COUNT(cases); i++) {
			const char *json = NULL, *again = NULL;
			size_t n = 0;

			assert_int_equal(kpack_get_kernel_metadata(archive, cases[i].name,
								   cases[i].arch, &json,
								   &n),
					 KPACK_SUCCESS);
			assert_string_equal(json, cases[i].want);
			assert_int_equal(n, strlen(json));
			assert_int_equal(kpack_get_kernel_metadata(archive, cases[i].name,
								   cases[i].arch, &again,
								   &n),
					 KPACK_SUCCESS);
			assert_ptr_equal(json, again);
		}
	}
	kpack_close(archive);
}

/* Metadata over the limit fails on every call, and does not affect other entries. */
TEST(metadata_is_bounded)
{
	static char big[KP_JSON_MAX + 1], toc[KP_JSON_MAX + 1024];
	struct ab a = ab_new(64);
	const char *json = "untouched";
	kpack_archive_t archive;
	size_t n = 7;

	memset(big, 'a', KP_JSON_MAX);
	ab_put(&a, "0123", 4);
	snprintf(toc, sizeof(toc),
		 "{'blobs': [{'offset': 64, 'size': 4}], 'toc': {'a#0': {'x': "
		 "{'ordinal': 0, 'metadata': {'n': '%s'}}}, 'b#0': {'x': @0}}}",
		 big);
	ab_toc_text(&a, toc);
	archive = ab_opened(&a);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(kpack_get_kernel_metadata(archive, "a", "x", &json, &n),
				 KPACK_ERROR_OUT_OF_MEMORY);
		assert_string_equal(kpack_get_last_error(archive),
				    "a#0 x: json: more than 1048576 bytes");
		assert_true(n == 7 && strcmp(json, "untouched") == 0);
	}
	assert_int_equal(kpack_get_kernel_metadata(archive, "b", "x", &json, &n),
			 KPACK_SUCCESS);
	kpack_close(archive);
}
