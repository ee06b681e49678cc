/* SPDX-License-Identifier: MIT */
/*
 * AMD's tests of the loader's calls and their arguments: the first half of
 * test_loader_api.cpp.  Above each test is AMD's name for it.  AMD's tests look inside a
 * cache; these look at the files that it keeps open.
 */
#include "tests/unit/amd_fixtures.h"
#include "tests/unit/unit.h"

/* ---- kpack_discover_binary_path ---- */

static const char here[] = "a constant of this program";

static kpack_error_t discover(const void *address, char *out, size_t size)
{
	return kpack_discover_binary_path(address, out, size, NULL);
}

/* LoaderAPITest.DiscoverBinaryPath_NullAddress */
TEST(no_address_is_refused, NULL, fx_after)
{
	char path[64] = "untouched";

	assert_int_equal(discover(NULL, path, sizeof(path)),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_string_equal(path, "untouched");
}

/* .DiscoverBinaryPath_NullPathOut */
TEST(no_place_for_the_path_is_refused, NULL, fx_after)
{
	assert_int_equal(discover(here, NULL, 64), KPACK_ERROR_INVALID_ARGUMENT);
}

/* .DiscoverBinaryPath_ZeroSize */
TEST(no_room_for_the_path_is_refused, NULL, fx_after)
{
	char path[64];

	assert_int_equal(discover(here, path, 0), KPACK_ERROR_INVALID_ARGUMENT);
}

/* .DiscoverBinaryPath_ValidAddress */
TEST(this_program_is_found, NULL, fx_after)
{
	char path[4096] = "";

	assert_int_equal(discover(here, path, sizeof(path)), KPACK_SUCCESS);
	assert_non_null(strstr(path, "unit-core"));
}

/* .DiscoverBinaryPath_BufferTooSmall */
TEST(too_little_room_is_refused, NULL, fx_after)
{
	char path[2] = "x";

	assert_int_equal(discover(here, path, 1), KPACK_ERROR_INVALID_ARGUMENT);
	assert_string_equal(path, "x");
}

/* ---- caches ---- */

/* .CacheCreate_Success */
TEST(a_cache_is_made, NULL, fx_after)
{
	kpack_cache_destroy(fx_cache());
}

/* .CacheCreate_NullPointer */
TEST(no_place_for_the_cache_is_refused, NULL, fx_after)
{
	assert_int_equal(kpack_cache_create(NULL), KPACK_ERROR_INVALID_ARGUMENT);
}

/* .CacheDestroy_Null */
TEST(destroying_null_does_nothing, NULL, fx_after)
{
	kpack_cache_destroy(NULL);
}

/*
 * .CacheCreate_ResolvesEnvVars: AMD's test reads the cache's lists; here the order of
 * look-ups shows them
 */
TEST(a_cache_takes_its_lists_from_the_environment, NULL, fx_after)
{
	static const struct fx_object one[] = {{"k#0", "gfx900", "ONE", 3, 0}, {0}};
	static const struct fx_object two[] = {{"k#0", "gfx900", "TWO", 3, 0}, {0}};
	static const struct fx_object three[] = {{"k#0", "gfx900", "THREE", 5, 0}, {0}};
	static const struct fx_ask q = {"k", 0, "gfx900", "three.kpack"};

	fx_put_packed("one.kpack", "'gfx900'", one);
	fx_put_packed("two.kpack", "'gfx900'", two);
	fx_put_packed("three.kpack", "'gfx900'", three);
	fx_loads(&q, three);
	fx_set_list("ROCM_KPACK_PATH_PREFIX", "none.kpack", "two.kpack");
	fx_loads(&q, two);
	fx_set_list("ROCM_KPACK_PATH", "one.kpack", "two.kpack");
	fx_loads(&q, one);
	fx_set_list("ROCM_KPACK_PATH", "two.kpack", "one.kpack");
	fx_loads(&q, two);
	fx_set_list("ROCM_KPACK_PATH", "none.kpack", "one.kpack");
	fx_loads(&q, one);
}

/* .CacheReusesArchives */
TEST(a_new_cache_holds_no_archive, NULL, fx_after)
{
	kpack_cache_t cache;

	fx_set_list("ROCM_KPACK_PATH", "test_noop.kpack", "test_zstd.kpack");
	cache = fx_cache();
	assert_int_equal(fx_open_files(), 0);
	kpack_cache_destroy(cache);
}

/* ---- arguments of a load ---- */

enum argument { CACHE, METADATA, BINARY_PATH, ARCH_LIST, ARCH_COUNT, OBJECT, SIZE };

static void check_without(enum argument missing)
{
	struct fx_marker m = fx_marker_of("lib/libtest.so", "test_noop.kpack");
	kpack_cache_t cache = fx_cache();
	const char *archs[] = {"gfx900"};
	void *data = NULL;
	size_t size = 7;

	assert_int_equal(kpack_load_code_object(missing == CACHE ? NULL : cache,
						missing == METADATA ? NULL : m.at,
						missing == BINARY_PATH ? NULL : "/x", 0,
						missing == ARCH_LIST ? NULL : archs,
						missing == ARCH_COUNT ? 0 : 1,
						missing == OBJECT ? NULL : &data,
						missing == SIZE ? NULL : &size),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_true(!data && size == 7);
	kpack_cache_destroy(cache);
	fx_marker_free(&m);
}

/* .LoadCodeObject_NullCache */
TEST(a_load_without_cache_is_refused, NULL, fx_after)
{
	check_without(CACHE);
}

/* .LoadCodeObject_NullMetadata */
TEST(a_load_without_metadata_is_refused, NULL, fx_after)
{
	check_without(METADATA);
}

/* .LoadCodeObject_NullBinaryPath */
TEST(a_load_without_binary_is_refused, NULL, fx_after)
{
	check_without(BINARY_PATH);
}

/* .LoadCodeObject_NullArchList */
TEST(a_load_without_list_of_archs_is_refused, NULL, fx_after)
{
	check_without(ARCH_LIST);
}

/* .LoadCodeObject_ZeroArchCount */
TEST(a_load_for_no_arch_is_refused, NULL, fx_after)
{
	check_without(ARCH_COUNT);
}

/* .LoadCodeObject_NullCodeObjectOut */
TEST(a_load_into_nothing_is_refused, NULL, fx_after)
{
	check_without(OBJECT);
}

/* .LoadCodeObject_NullSizeOut */
TEST(a_load_without_size_is_refused, NULL, fx_after)
{
	check_without(SIZE);
}

/* .FreeCodeObject_Null */
TEST(freeing_a_null_object_does_nothing, NULL, fx_after)
{
	kpack_free_code_object(NULL);
}

/* ---- metadata ---- */

static void check_marker(struct fx_marker m, kpack_error_t want)
{
	kpack_cache_t cache = fx_cache();
	const char *archs[] = {"gfx900"};
	char binary[FX_PATH];
	void *data = NULL;
	size_t size = 0;

	assert_int_equal(kpack_load_code_object(cache, m.at, fx_path("fake.so", binary),
						0, archs, 1, &data, &size),
			 want);
	assert_true((want == KPACK_SUCCESS) == (data != NULL));
	kpack_free_code_object(data);
	kpack_cache_destroy(cache);
	fx_marker_free(&m);
}

/* .LoadCodeObject_InvalidMetadata */
TEST(text_is_no_metadata, NULL, fx_after)
{
	static const char text[] = "this is not valid msgpack data";

	check_marker(fx_marker_bytes(text, sizeof(text)), KPACK_ERROR_INVALID_METADATA);
}

/* .HIPKMetadata_MissingKernelName, _MissingSearchPaths, _EmptySearchPaths,
 * _WrongTypeKernelName, _WrongTypeSearchPaths, _NotAMap */
TEST(metadata_must_have_both_fields_of_their_type, NULL, fx_after)
{
	static const char *const bad[] = {
		"{'kpack_search_paths': ['test_noop.kpack']}",
		"{'kernel_name': 'lib/libtest.so'}",
		"{'kernel_name': 'lib/libtest.so', 'kpack_search_paths': []}",
		"{'kernel_name': 12345, 'kpack_search_paths': ['test_noop.kpack']}",
		"{'kernel_name': 'lib', 'kpack_search_paths': 'test_noop.kpack'}",
		"['kernel_name', 'lib/libtest.so']",
		/* 2.1: an array without strings gives no path */
		"{'kernel_name': 'lib/libtest.so', 'kpack_search_paths': [1, nil, []]}",
	};

	for (size_t i = 0; i < COUNT(bad); i++)
		check_marker(fx_marker(bad[i]), KPACK_ERROR_INVALID_METADATA);
}

/*
 * 2.1: the first of equal keys counts; members that are not strings and unknown fields
 * are skipped
 */
TEST(metadata_is_read_as_amd_reads_it, NULL, fx_after)
{
	static const char *const good[] = {
		"{'kernel_name': 'lib/libtest.so', "
		"'kpack_search_paths': ['test_noop.kpack']}",
		"{'kernel_name': 'lib/libtest.so', 'kernel_name': 'other', "
		"'kpack_search_paths': ['test_noop.kpack'], 'kpack_search_paths': []}",
		"{'kernel_name': 'lib/libtest.so', 'kpack_search_paths': "
		"[1, 'no.kpack', nil, {'a': 1}, 'test_noop.kpack'], "
		"'future': [1, {2: 3}], 7: 'x', nil: 1}",
	};

	for (size_t i = 0; i < COUNT(good); i++)
		check_marker(fx_marker(good[i]), KPACK_SUCCESS);
}

/* ---- kpack_enumerate_architectures ---- */

struct seen {
	char text[64];
	int n, stop_at;
};

static bool note(const char *arch, void *user_data)
{
	struct seen *s = user_data;

	fx_say(s->text, sizeof(s->text), "%s ", arch);
	return ++s->n != s->stop_at;
}

static kpack_error_t enumerate(const char *name, struct seen *s)
{
	char path[FX_PATH];

	return kpack_enumerate_architectures(fx_path(name, path), note, s);
}

/* .EnumerateArchitectures_NullPath */
TEST(enumerating_no_file_is_refused, NULL, fx_after)
{
	struct seen s = {.n = 0};

	assert_int_equal(kpack_enumerate_architectures(NULL, note, &s),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(s.n, 0);
}

/* .EnumerateArchitectures_NullCallback */
TEST(enumerating_for_nobody_is_refused, NULL, fx_after)
{
	char path[FX_PATH];

	assert_int_equal(kpack_enumerate_architectures(fx_path("test_noop.kpack", path),
						       NULL, NULL),
			 KPACK_ERROR_INVALID_ARGUMENT);
}

/* .EnumerateArchitectures_FileNotFound */
TEST(enumerating_a_missing_file_says_so, NULL, fx_after)
{
	struct seen s = {.n = 0};

	assert_int_equal(enumerate("nonexistent.kpack", &s), KPACK_ERROR_FILE_NOT_FOUND);
	assert_int_equal(s.n, 0);
}

/* .EnumerateArchitectures_ValidArchive */
TEST(all_archs_are_enumerated_in_order, NULL, fx_after)
{
	struct seen s = {.n = 0};

	assert_int_equal(enumerate("test_noop.kpack", &s), KPACK_SUCCESS);
	assert_string_equal(s.text, "gfx900 gfx906 ");
}

/* .EnumerateArchitectures_EarlyTermination */
TEST(a_callback_that_stops_is_no_error, NULL, fx_after)
{
	struct seen s = {.stop_at = 1};

	assert_int_equal(enumerate("test_noop.kpack", &s), KPACK_SUCCESS);
	assert_int_equal(s.n, 1);
	assert_int_equal(fx_open_files(), 0);
}

SUITE(fx_make, fx_remove);
