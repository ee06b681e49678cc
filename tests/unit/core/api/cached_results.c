/* SPDX-License-Identifier: MIT */
/* Lists of architectures and kernels, and metadata: results that an archive caches. */
#include "core/api/cached_results.h"
#include "tests/unit/archive_builder.h"
#include "core/base/bounds.h"
#include "core/rocm_kpack/kpack.h"
#include "core/rocm_kpack/kpackx.h"
#include <pthread.h>
#include "tests/unit/unit.h"

static kpack_archive_t opened(struct ab *a)
{
	struct kpackx_error why;
	kpack_archive_t archive = NULL;

	if (ab_open(a, &archive, &why) != KPACK_SUCCESS)
		fail_msg("open: %s", why.text);
	ab_free(a);
	return archive;
}

/* An archive of empty objects; each string is "KEY ARCH,ARCH". */
static kpack_archive_t with_keys(const char *const *keys, size_t n)
{
	char toc[32768] = "", entry[512], key[128], arches[128];
	struct ab a = ab_new(64);

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(sscanf(keys[i], "%127s %127s", key, arches), 2);
		snprintf(entry, sizeof(entry), "'%s': {", key);
		strcat(toc, entry);
		for (char *s, *p = strtok_r(arches, ",", &s); p;
		     p = strtok_r(NULL, ",", &s)) {
			snprintf(entry, sizeof(entry), "'%s': {'ordinal': 0}, ", p);
			strcat(toc, entry);
		}
		strcat(toc, "}, ");
	}
	ab_toc(&a,
	       "{'gfx_arches': ['x', 'y'], 'blobs': [{'offset': 64, 'size': 0}], "
	       "'toc': {%s}}",
	       toc);
	return opened(&a);
}

/* --- architectures -------------------------------------------------------------------- */

TEST(architectures_are_listed_as_stored)
{
	struct ab a = ab_new(16);
	const char **arches = NULL, **again = NULL;
	kpack_archive_t archive;
	size_t n = 0;

	ab_toc(&a, "{'gfx_arches': ['gfx942:xnack+', 'gfx90a', 'gfx90a']}");
	archive = opened(&a);
	assert_int_equal(kpack_get_architectures(archive, &arches, &n), KPACK_SUCCESS);
	assert_int_equal(n, 3);
	assert_string_equal(arches[0], "gfx942:xnack+");
	assert_string_equal(arches[1], "gfx90a");
	assert_string_equal(arches[2], "gfx90a");
	assert_null(arches[3]);
	assert_int_equal(kpack_get_architectures(archive, &again, &n), KPACK_SUCCESS);
	assert_ptr_equal(arches, again);
	kpack_close(archive);

	a = ab_new(16);
	ab_toc(&a, "{}");
	archive = opened(&a);
	assert_int_equal(kpack_get_architectures(archive, &arches, &n), KPACK_SUCCESS);
	assert_int_equal(n, 0);
	assert_null(arches[0]);
	kpack_close(archive);
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
		"lib/x x",     "lib/x#0 x,y",   "lib/x#1 y",
		"lib/x#10 x",  "lib/x#2 x",     "lib/x#9 x",
		"lib/x!y#0 x", "lib/x-y#0 x",   "lib/x.so#0 x,y",
		"lib/x/a#0 x", "lib/x/a#10 x",  "lib/x/a#2 x",
		"lib/x/b/c x", "lib/x0 x",      "lib/x#4294967295 x",
		"lib/x#01 x",  "lib/x#2/z#0 x", "lib/x#4294967296 x",
		"lib/y#0 y",   "z x",
	};
	static const struct {
		const char *name, *arch, *want;
	} cases[] = {
		{"lib/x", "x",
		 "lib/x lib/x#0 lib/x#2 lib/x#9 lib/x#10 lib/x#4294967295 "
		 "lib/x/a#0 lib/x/a#2 lib/x/a#10 lib/x/b/c "},
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
		{"", "y", "lib/x#0 lib/x#1 lib/x.so#0 lib/y#0 "},
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

TEST(bytes_above_ascii_are_in_order_too)
{
	static const char *const keys[] = {"\xc3\xa4#0 x", "\xc3\xa4#10 x",
					   "\xc3\xa4#2 x", "\xc3\xa4/k x",
					   "\xf4\x8f\xbf\xbf#0 x"};
	kpack_archive_t archive = with_keys(keys, COUNT(keys));

	check_list(archive, "\xc3\xa4", "x",
		   "\xc3\xa4#0 \xc3\xa4#2 \xc3\xa4#10 \xc3\xa4/k ");
	check_list(archive, "\xc3", "x", "");
	check_list(archive, "\xf4\x8f\xbf\xbf", "x", "\xf4\x8f\xbf\xbf#0 ");
	check_list(archive, "\xff\xff", "x", "");
	kpack_close(archive);
}

TEST(nothing_is_listed_of_an_empty_archive)
{
	struct ab a = ab_new(16);
	static char name[3 * KP_NAME_MAX];
	kpack_archive_t archive;

	ab_toc(&a, "{}");
	archive = opened(&a);
	check_list(archive, "", "x", "");
	check_list(archive, "a", "x", "");
	kpack_close(archive);

	archive = with_keys((const char *const[]){"a#0 x"}, 1);
	memset(name, 'a', sizeof(name) - 1);
	for (size_t n = KP_NAME_MAX - 2; n < KP_NAME_MAX + 3; n++) {
		name[n] = '\0';
		check_list(archive, name, "x", "");
		name[n] = 'a';
	}
	check_list(archive, "a", name, "");
	kpack_close(archive);
}

/* --- metadata ------------------------------------------------------------------------- */

TEST(metadata_is_json)
{
	static const struct {
		const char *name, *arch, *want;
	} cases[] = {
		{"lib/x.so", "gfx942",
		 "{\"binary\":\"lib/x.so#0\",\"arch\":\"gfx942\",\"type\":\"co\","
		 "\"ordinal\":1,\"original_size\":3,\"stored_size\":3,\"metadata\":"
		 "{\"path\":\"a\\\"b\",\"xxh3\":\"00ff\",\"n\":{\"5\":[null,-1,1.5]}}}"},
		{"lib/x.so#0", "gfx90a",
		 "{\"binary\":\"lib/x.so#0\",\"arch\":\"gfx90a\",\"type\":\"hsaco\","
		 "\"ordinal\":0,\"original_size\":4,\"stored_size\":4}"},
		{"lib/x.so#1", "gfx90a",
		 "{\"binary\":\"lib/x.so#1\",\"arch\":\"gfx90a\",\"type\":\"hsaco\","
		 "\"ordinal\":0,\"original_size\":4,\"stored_size\":4,\"metadata\":{}}"},
		{"b/gfx900/k", "gfx900",
		 "{\"binary\":\"b/gfx900/k\",\"arch\":\"gfx900\",\"type\":\"hsaco\","
		 "\"ordinal\":1,\"original_size\":3,\"stored_size\":3}"},
	};
	struct ab a = ab_new(64);
	kpack_archive_t archive;

	ab_put(&a, "0123012", 7);
	ab_toc(&a, "{'blobs': [{'offset': 64, 'size': 4}, {'offset': 68, 'size': 3}], "
		   "'toc': {"
		   "'lib/x.so#0': {'gfx90a': {'ordinal': 0}, 'gfx942': {'ordinal': 1, "
		   "'type': "
		   "'co', 'metadata': {'path': 'a\"b', 'path': 'second', 'xxh3': "
		   "x'00ff', 'n': "
		   "{5: [nil, -1, 1.5]}}}}, 'lib/x.so#1': {'gfx90a': {'metadata': {}, "
		   "'ordinal': 0}}, 'b/gfx900/k': {'ordinal': 1}}}");
	archive = opened(&a);
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
	snprintf(
		toc, sizeof(toc),
		"{'blobs': [{'offset': 64, 'size': 4}], 'toc': {'a#0': {'x': {'ordinal': "
		"0, 'metadata': {'n': '%s'}}}, 'b#0': {'x': {'ordinal': 0}}}}",
		big);
	ab_toc_text(&a, toc);
	archive = opened(&a);
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

/* --- threads -------------------------------------------------------------------------- */

enum { KEYS = 60, THREADS = 8 };

struct asking {
	kpack_archive_t archive;
	pthread_barrier_t *barrier;
	unsigned number, wrong;
	const void *answers[3 * KEYS + 2];
};

static void *ask(void *arg)
{
	struct asking *w = arg;
	const char **names, *json, *text;
	char name[32];
	size_t n;

	pthread_barrier_wait(w->barrier);
	for (unsigned i = 0; i < KEYS; i++) {
		unsigned k = w->number & 1 ? KEYS - 1 - i : i;

		snprintf(name, sizeof(name), "lib/k%02u", k);
		w->wrong += kpack_list_kernels(w->archive, name, "x", &names, &n) ||
			    n != 2 || strncmp(names[1], name, strlen(name)) != 0;
		w->answers[3 * k] = names;
		w->wrong +=
			kpack_list_kernels(w->archive, name, "y", &names, &n) || n != 1;
		w->answers[3 * k + 1] = names;
		w->wrong += kpack_get_kernel_metadata(w->archive, name, "x", &json, &n) ||
			    n != strlen(json) || !strstr(json, name);
		w->answers[3 * k + 2] = json;
	}
	w->wrong += kpack_list_kernels(w->archive, "", "x", &names, &n) || n != 2 * KEYS;
	w->answers[3 * KEYS] = names;
	w->wrong += kpack_get_architectures(w->archive, &names, &n) || n != 2;
	w->answers[3 * KEYS + 1] = names;
	w->wrong += kpack_get_architecture(w->archive, 1, &text) || names[1] != text;
	return NULL;
}

TEST(threads_get_the_same_answers)
{
	char lines[2 * KEYS][32];
	const char *keys[2 * KEYS];

	for (unsigned i = 0; i < KEYS; i++) {
		snprintf(lines[2 * i], sizeof(lines[0]), "lib/k%02u#0 x,y", i);
		snprintf(lines[2 * i + 1], sizeof(lines[0]), "lib/k%02u#1 x", i);
	}
	for (unsigned i = 0; i < COUNT(keys); i++)
		keys[i] = lines[i];
	for (int round = 0; round < 10; round++) {
		kpack_archive_t archive = with_keys(keys, COUNT(keys));
		struct asking workers[THREADS];
		pthread_t threads[THREADS];
		pthread_barrier_t barrier;

		pthread_barrier_init(&barrier, NULL, THREADS);
		for (unsigned i = 0; i < THREADS; i++) {
			workers[i] = (struct asking){archive, &barrier, i, 0, {0}};
			assert_int_equal(
				pthread_create(&threads[i], NULL, ask, &workers[i]), 0);
		}
		for (unsigned i = 0; i < THREADS; i++) {
			assert_int_equal(pthread_join(threads[i], NULL), 0);
			assert_int_equal(workers[i].wrong, 0);
			assert_memory_equal(workers[i].answers, workers[0].answers,
					    sizeof(workers[0].answers));
		}
		pthread_barrier_destroy(&barrier);
		kpack_close(archive);
	}
}
