/* SPDX-License-Identifier: MIT */
/*
 * Calls that run out of memory, each time at another allocation: they report it, write no
 * output and leak nothing.
 */
#include "tests/unit/loading.h"
#include "core/rocm_kpack/kpackx.h"
#include "tests/unit/unit.h"

enum { MALLOC_FAILS = !UNIT_ASAN && !UNIT_TSAN };

/* ---- an allocator that fails ---- */

static long fails_after = -1; /* number of allocations; -1: never */
static long made, live;

#if !UNIT_ASAN && !UNIT_TSAN
static bool may_not(void)
{
	made++;
	return fails_after >= 0 && fails_after-- == 0;
}

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void __libc_free(void *p);

/* These four replace the C library's functions in this program and all its libraries. */
#pragma GCC visibility push(default)
void *malloc(size_t size)
{
	void *p = may_not() ? NULL : __libc_malloc(size);

	live += p != NULL;
	return p;
}

void *calloc(size_t n, size_t size)
{
	void *p = may_not() ? NULL : __libc_calloc(n, size);

	live += p != NULL;
	return p;
}

void *realloc(void *old, size_t size)
{
	void *p = may_not() ? NULL : __libc_realloc(old, size);

	live += !old && p;
	return p;
}

void free(void *p)
{
	live -= p != NULL;
	__libc_free(p);
}
#pragma GCC visibility pop
#endif

/* ---- calls ---- */

enum { SIZE = 20000 };

static char data[SIZE];
static char binary_path[64];
static struct marker its_marker;

static kpack_error_t load(void **out, size_t *size)
{
	static const char *const archs[] = {"gfx90a:sramecc+:xnack-", "gfx900"};
	kpack_cache_t cache = NULL;
	kpack_error_t err = kpack_cache_create(&cache);

	if (!err)
		err = kpack_load_code_object(cache, its_marker.at, binary_path, 0, archs,
					     2, out, size);
	kpack_cache_destroy(cache);
	return err;
}

/* Each allocation fails once. */
TEST(loading_says_so)
{
	long n = 1, failed = 0, before;

	for (long i = -1; i < n; i++) {
		void *out = NULL;
		size_t size = 0;
		kpack_error_t err;

		before = live;
		made = 0;
		fails_after = i;
		err = load(&out, &size);
		fails_after = -1;
		if (i < 0)
			n = made;
		/* some allocations are optional */
		if (err && (err != KPACK_ERROR_OUT_OF_MEMORY || i < 0))
			fail_msg("allocation %ld of %ld: %s", i, n,
				 kpackx_error_name(err));
		failed += err != KPACK_SUCCESS;
		if (err)
			assert_true(!out && size == 0);
		else
			assert_true(size == SIZE && memcmp(out, data, SIZE) == 0);
		kpack_free_kernel(out);
		if (live != before)
			fail_msg("allocation %ld of %ld: %ld are left", i, n,
				 live - before);
	}
	assert_true(failed > 5 || !MALLOC_FAILS);
}

/* ---- tested calls ---- */

static int make_archive(void **state)
{
	static const struct kpackx_object o = {
		.binary = "lib/x.so", .arch = "gfx900", .data = data, .size = SIZE};
	kpackx_writer_t w;

	make_dir(state);
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (char)(i * i >> 7);
	snprintf(binary_path, sizeof(binary_path), "%s/x.so", dir);
	assert_int_equal(kpackx_writer_open(in_dir("a.kpack"), NULL, &w, NULL),
			 KPACK_SUCCESS);
	assert_int_equal(kpackx_writer_add(w, &o, NULL), KPACK_SUCCESS);
	assert_int_equal(kpackx_writer_finish(w, NULL), KPACK_SUCCESS);
	its_marker = marker_of("lib/x.so", "a.kpack");
	return 0;
}

static int remove_archive(void **state)
{
	marker_free(&its_marker);
	return remove_dir(state);
}

SUITE(make_archive, remove_archive);
