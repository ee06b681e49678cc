/* SPDX-License-Identifier: MIT */
/*
 * AMD's tests of loading: the second half of test_loader_api.cpp.  Above each test is
 * AMD's name for it.
 */
#include <pthread.h>
#include "tests/unit/amd_fixtures.h"
#include "tests/unit/unit.h"

static const struct fx_ask noop900 = {"lib/libtest.so", 0, "gfx900", "test_noop.kpack"};
static const struct fx_ask noop906 = {"lib/libtest.so", 0, "gfx906", "test_noop.kpack"};
static const struct fx_ask elsewhere = {"lib/libtest.so", 0, "gfx900",
					"no/such/place.kpack"};

/* ---- loading ---- */

/* .LoadCodeObject_FromNoopArchive */
TEST(code_comes_from_a_plain_archive, NULL, fx_after)
{
	fx_loads(&noop900, &fx_noop[0]);
}

/* .LoadCodeObject_FromZstdArchive */
TEST(code_comes_from_a_compressed_archive, NULL, fx_after)
{
	static const struct fx_ask q = {"lib/libhip.so", 0, "gfx1100", "test_zstd.kpack"};

	fx_loads(&q, &fx_zstd[0]);
}

/* .LoadCodeObject_ArchitecturePriority */
TEST(the_first_arch_of_the_list_is_taken, NULL, fx_after)
{
	static const struct fx_ask q = {"lib/libtest.so", 0, "gfx906 gfx900",
					"test_noop.kpack"};

	fx_loads(&q, &fx_noop[1]);
}

/* .LoadCodeObject_ArchNotFound */
TEST(an_arch_that_does_not_exist_is_not_found, NULL, fx_after)
{
	static const struct fx_ask q = {"lib/libtest.so", 0, "gfx9999",
					"test_noop.kpack"};

	fx_loads_not(&q, KPACK_ERROR_ARCH_NOT_FOUND);
}

/* .LoadCodeObject_ArchNotInArchive */
TEST(an_arch_of_another_archive_is_not_found, NULL, fx_after)
{
	static const struct fx_ask q = {"lib/libhip.so", 0, "gfx900", "test_zstd.kpack"};

	fx_loads_not(&q, KPACK_ERROR_ARCH_NOT_FOUND);
}

/* .LoadCodeObject_ArchiveNotFound, .LoadCodeObject_ArchiveFileNotFound */
TEST(without_any_archive_none_is_found, NULL, fx_after)
{
	static const struct fx_ask absolute = {"lib/libtest.so", 0, "gfx900",
					       "/nonexistent/path/archive.kpack"};

	fx_loads_not(&elsewhere, KPACK_ERROR_ARCHIVE_NOT_FOUND);
	fx_loads_not(&absolute, KPACK_ERROR_ARCHIVE_NOT_FOUND);
}

/* .LoadCodeObject_EnvPathOverride */
TEST(a_path_from_the_environment_wins_over_wrong_ones, NULL, fx_after)
{
	struct fx_marker m = fx_marker_of("lib/libtest.so", "/wrong/path.kpack");
	const char *archs[] = {"gfx900"};
	kpack_cache_t cache;
	void *data = NULL;
	size_t size = 0;

	fx_set_list("ROCM_KPACK_PATH", "test_noop.kpack", "none.kpack");
	cache = fx_cache();
	assert_int_equal(kpack_load_code_object(cache, m.at, "/bogus/binary.so", 0, archs,
						1, &data, &size),
			 KPACK_SUCCESS);
	assert_true(fx_is(data, size, &fx_noop[0]));
	kpack_free_code_object(data);
	kpack_cache_destroy(cache);
	fx_marker_free(&m);
}

/* .LoadCodeObject_TargetTripleStripping */
TEST(an_arch_may_have_the_triple_in_front, NULL, fx_after)
{
	static const struct fx_ask q = {"lib/libtest.so", 0, TRIPLE "gfx900",
					"test_noop.kpack"};

	fx_loads(&q, &fx_noop[0]);
}

/* .LoadCodeObject_KernelNotFound */
TEST(an_index_that_is_not_there_is_not_found, NULL, fx_after)
{
	static const struct fx_ask q = {"lib/libtest.so", 999, "gfx900",
					"test_noop.kpack"};

	fx_loads_not(&q, KPACK_ERROR_KERNEL_NOT_FOUND);
}

/* .LoadCodeObject_FallsThroughToNextArchiveOnKernelNotFound */
TEST(an_archive_without_the_kernel_is_passed_over, NULL, fx_after)
{
	static const struct fx_ask q = {
		"lib/libtest.so", 0, TRIPLE "gfx90a:sramecc+:xnack-",
		"test_fallthrough_xnack.kpack test_fallthrough_generic.kpack"};

	fx_loads(&q, &fx_generic[0]);
}

/* .LoadCodeObject_CacheReusesArchive */
TEST(two_archs_of_one_file_open_it_once, NULL, fx_after)
{
	kpack_cache_t cache = fx_cache();

	fx_check_load(cache, &noop900, &fx_noop[0]);
	fx_check_load(cache, &noop906, &fx_noop[1]);
	assert_int_equal(fx_open_files(), 1);
	kpack_cache_destroy(cache);
	assert_int_equal(fx_open_files(), 0);
}

/* ---- the environment ---- */

/* .LoadCodeObject_DisabledViaEnv */
TEST(loading_is_switched_off, NULL, fx_after)
{
	setenv("ROCM_KPACK_DISABLE", "1", 1);
	fx_loads_not(&noop900, KPACK_ERROR_NOT_IMPLEMENTED);
}

/* .EnvDisable_WithZero, .EnvDisable_WithEmpty */
TEST(zero_and_nothing_do_not_switch_off, NULL, fx_after)
{
	setenv("ROCM_KPACK_DISABLE", "0", 1);
	fx_loads(&noop900, &fx_noop[0]);
	setenv("ROCM_KPACK_DISABLE", "", 1);
	fx_loads(&noop900, &fx_noop[0]);
}

/* .EnvPath_EmptyComponents, .EnvPath_TrailingColon */
TEST(empty_members_of_a_list_are_left_out, NULL, fx_after)
{
	static const char *const forms[] = {"@::@", "@:", ":@", "::@::"};
	char path[FX_PATH], value[3 * FX_PATH];

	fx_path("test_noop.kpack", path);
	for (size_t i = 0; i < COUNT(forms); i++) {
		char *at = value;

		for (const char *f = forms[i]; *f; f++)
			at = stpcpy(at, *f == '@' ? path : ":");
		setenv("ROCM_KPACK_PATH", value, 1);
		fx_loads(&elsewhere, &fx_noop[0]);
	}
}

/* .EnvPathPrefix_WithOverride */
TEST(a_prefix_is_not_used_beside_a_path, NULL, fx_after)
{
	static const struct fx_ask q = {"lib/libhip.so", 0, "gfx1100", "test_zstd.kpack"};

	fx_set_list("ROCM_KPACK_PATH_PREFIX", "test_zstd.kpack", "none.kpack");
	fx_loads(&q, &fx_zstd[0]);
	fx_set_list("ROCM_KPACK_PATH", "test_noop.kpack", "none.kpack");
	fx_loads(&elsewhere, &fx_noop[0]);
	fx_loads_not(&q, KPACK_ERROR_ARCH_NOT_FOUND);
}

/* ---- threads ---- */

struct worker {
	kpack_cache_t cache;
	const struct fx_ask *q;
	const struct fx_object *want;
	int rounds, good;
};

static void *load_often(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < w->rounds; i++) {
		void *data = NULL;
		size_t size = 0;

		w->good += !fx_load(w->cache, w->q, &data, &size) &&
			   fx_is(data, size, w->want);
		kpack_free_code_object(data);
	}
	return NULL;
}

static void check_threads(size_t n, int rounds)
{
	kpack_cache_t cache = fx_cache();
	struct worker workers[10];
	pthread_t threads[10];

	for (size_t i = 0; i < n; i++) {
		workers[i] = (struct worker){cache, i % 2 ? &noop906 : &noop900,
					     &fx_noop[i % 2], rounds, 0};
		assert_int_equal(
			pthread_create(&threads[i], NULL, load_often, &workers[i]), 0);
	}
	for (size_t i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(workers[i].good, rounds);
	}
	assert_int_equal(fx_open_files(), 1);
	kpack_cache_destroy(cache);
}

/* .ThreadSafety_ConcurrentLoadCodeObject */
TEST(eight_threads_load_fifty_times_each, NULL, fx_after)
{
	check_threads(8, 50);
}

/* .ThreadSafety_ConcurrentArchiveCaching */
TEST(ten_threads_open_one_archive, NULL, fx_after)
{
	check_threads(10, 1);
}

SUITE(fx_make, fx_remove);
