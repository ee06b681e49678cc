/* SPDX-License-Identifier: MIT */
#include "core/rocm_kpack/kpack.h"
#include "tests/unit/archive_builder.h"
#include "core/base/bounds.h"
#include <pthread.h>
#include <sys/stat.h>
#include "tests/unit/unit.h"

static kpack_archive_t opened(const struct ab *a)
{
	kpack_archive_t archive = NULL;
	char path[32];
	int fd = ab_memfd(a->bytes, a->size, path);

	assert_int_equal(kpack_open(path, &archive), KPACK_SUCCESS);
	close(fd);
	return archive;
}

/* Three kernels with the sizes in AMD's fixture. */
static struct ab fixture(const uint8_t *data)
{
	struct ab a = ab_new_zstd();

	ab_frame(&a, data, 1019);
	ab_frame(&a, data + 1, 619);
	ab_frame(&a, data + 2, 1018);
	ab_toc(&a,
	       "{'format_version': 1, 'group_name': 'test', 'gfx_arch_family': 'gfx110X',"
	       "'gfx_arches': ['gfx1100', 'gfx1101'], 'toc': {'lib/libhip.so#0': "
	       "{'gfx1100':"
	       "{'type': 'hsaco', 'ordinal': 0, 'original_size': 1019}, 'gfx1101': "
	       "{'type':"
	       "'hsaco', 'ordinal': 1, 'original_size': 619}}, 'bin/hiptest#0': "
	       "{'gfx1100': {"
	       "'type': 'hsaco', 'ordinal': 2, 'original_size': 1018}}}, "
	       "'compression_scheme':"
	       "'zstd-per-kernel', 'zstd_offset': 64, 'zstd_size': %zu}",
	       a.size - 64);
	return a;
}

TEST(an_archive_is_queried)
{
	uint8_t *data = ab_data(1024, 1);
	struct ab a = fixture(data);
	kpack_archive_t archive = opened(&a);
	const char *text = NULL, *again = NULL;
	size_t n = 0;

	assert_int_equal(kpack_get_architecture_count(archive, &n), KPACK_SUCCESS);
	assert_int_equal(n, 2);
	assert_int_equal(kpack_get_architecture(archive, 1, &text), KPACK_SUCCESS);
	assert_string_equal(text, "gfx1101");
	assert_int_equal(kpack_get_binary_count(archive, &n), KPACK_SUCCESS);
	assert_int_equal(n, 2);
	assert_int_equal(kpack_get_binary(archive, 0, &text), KPACK_SUCCESS);
	assert_string_equal(text, "bin/hiptest#0");
	assert_int_equal(kpack_get_binary(archive, 0, &again), KPACK_SUCCESS);
	assert_ptr_equal(text, again);
	assert_int_equal(kpack_get_binary(archive, 1, &text), KPACK_SUCCESS);
	assert_string_equal(text, "lib/libhip.so#0");
	for (size_t beyond = 2; beyond < 5; beyond++) {
		assert_int_equal(kpack_get_binary(archive, beyond, &text),
				 KPACK_ERROR_INVALID_ARGUMENT);
		assert_int_equal(kpack_get_architecture(archive, beyond, &text),
				 KPACK_ERROR_INVALID_ARGUMENT);
	}
	assert_int_equal(kpack_get_binary(archive, SIZE_MAX, &text),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_string_equal(text, "lib/libhip.so#0");
	kpack_close(archive);
	ab_free(&a);
	free(data);
}

TEST(kernels_are_the_callers)
{
	uint8_t *data = ab_data(1024, 1);
	struct ab a = fixture(data);
	kpack_archive_t archive = opened(&a);
	void *first = NULL, *second = NULL, *third = NULL;
	size_t size = 0;

	assert_int_equal(
		kpack_get_kernel(archive, "lib/libhip.so#0", "gfx1100", &first, &size),
		KPACK_SUCCESS);
	assert_int_equal(size, 1019);
	assert_int_equal(
		kpack_get_kernel(archive, "lib/libhip.so#0", "gfx1101", &second, &size),
		KPACK_SUCCESS);
	assert_int_equal(size, 619);
	assert_int_equal(
		kpack_get_kernel(archive, "lib/libhip.so#0", "gfx1100", &third, &size),
		KPACK_SUCCESS);
	kpack_close(archive);
	assert_memory_equal(first, data, 1019);
	assert_memory_equal(second, data + 1, 619);
	assert_memory_equal(third, data, 1019);
	assert_ptr_not_equal(first, third);
	kpack_free_kernel(first);
	kpack_free_kernel(second);
	kpack_free_kernel(third);
	ab_free(&a);
	free(data);
}

TEST(names_are_exact_or_of_number_0)
{
	static const struct {
		const char *name, *arch;
		const char *data; /* NULL: no data */
	} cases[] = {
		{"a#0", "x", "zero"},      {"a", "x", "zero"},
		{"a#1", "x", "one"},       {"a#00", "x", NULL},
		{"a#2", "x", NULL},        {"a#0#0", "x", "zero"},
		{"a#", "x", NULL},         {"a#0", "y", NULL},
		{"a", "y", NULL},          {"A", "x", NULL},
		{"", "x", NULL},           {"b", "x", "bare"},
		{"b#0", "x", "bare"},      {"c", "x", "bare"},
		{"c#0", "x", "zero"},      {"d#/e.so", "x", "one"},
		{"d#/e.so#0", "x", "one"}, {"a#0", "", NULL},
	};
	struct ab a = ab_new(64);
	kpack_archive_t archive;

	ab_put(&a, "zeroone.bare", 12);
	ab_toc(&a, "{'blobs': [{'offset': 64, 'size': 4}, {'offset': 68, 'size': 3}, "
		   "{'offset':"
		   "72, 'size': 4}], 'toc': {'a#0': {'x': {'ordinal': 0}}, 'a#1': {'x': "
		   "{'ordinal':"
		   "1}}, 'b': {'x': {'ordinal': 2}}, 'c': {'x': {'ordinal': 2}}, 'c#0': "
		   "{'x': {"
		   "'ordinal': 0}}, 'd#/e.so#0': {'x': {'ordinal': 1}}}}");
	archive = opened(&a);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct kpackx_error why = {0};
		void *data = NULL;
		size_t size = 7;
		kpack_error_t err = kpackx_get_kernel(archive, cases[i].name,
						      cases[i].arch, &data, &size, &why);

		if (!cases[i].data) {
			assert_int_equal(err, KPACK_ERROR_KERNEL_NOT_FOUND);
			assert_true(!data && size == 7 && why.text[0]);
			continue;
		}
		if (err)
			fail_msg("%s: %s", cases[i].name, why.text);
		assert_int_equal(size, strlen(cases[i].data));
		assert_memory_equal(data, cases[i].data, size);
		kpack_free_kernel(data);
	}
	kpack_close(archive);
	ab_free(&a);
}

TEST(long_names_are_not_found)
{
	struct ab a = ab_new(16);
	char name[3 * KP_NAME_MAX];
	kpack_archive_t archive;
	size_t size;
	void *data;

	ab_toc(&a, "{}");
	archive = opened(&a);
	memset(name, 'a', sizeof(name));
	for (size_t n = KP_NAME_MAX - 3; n < sizeof(name);
	     n = n < KP_NAME_MAX + 3 ? n + 1 : n * 2) {
		name[n] = 0;
		assert_int_equal(kpack_get_kernel(archive, name, name, &data, &size),
				 KPACK_ERROR_KERNEL_NOT_FOUND);
		name[n] = 'a';
	}
	kpack_close(archive);
	ab_free(&a);
}

TEST(empty_kernels_have_an_address)
{
	struct ab a = ab_new(64);
	kpack_archive_t archive;
	void *data = NULL;
	size_t size = 7;

	ab_toc(&a, "{'blobs': [{'offset': 64, 'size': 0}], 'toc': {'a#0': {'x': "
		   "{'ordinal': 0}}}}");
	archive = opened(&a);
	assert_int_equal(kpack_get_kernel(archive, "a", "x", &data, &size),
			 KPACK_SUCCESS);
	assert_int_equal(size, 0);
	assert_non_null(data);
	kpack_free_kernel(data);
	kpack_close(archive);
	ab_free(&a);
}

TEST(arguments_that_are_null_are_refused)
{
	struct ab a = ab_new(16);
	kpack_archive_t archive, none = NULL;
	const char *text;
	size_t n;
	void *data;

	ab_toc(&a, "{}");
	archive = opened(&a);
	assert_int_equal(kpack_open(NULL, &none), KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_open("/dev/null", NULL), KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_architecture_count(NULL, &n),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_architecture_count(archive, NULL),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_architecture(NULL, 0, &text),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_architecture(archive, 0, NULL),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_architecture(archive, 0, &text),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_binary_count(NULL, &n), KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_binary_count(archive, NULL),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_binary(NULL, 0, &text), KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_binary(archive, 0, NULL),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_binary(archive, 0, &text),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_kernel(NULL, "a", "x", &data, &n),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_kernel(archive, NULL, "x", &data, &n),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_kernel(archive, "a", NULL, &data, &n),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_kernel(archive, "a", "x", NULL, &n),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_kernel(archive, "a", "x", &data, NULL),
			 KPACK_ERROR_INVALID_ARGUMENT);
	kpack_close(archive);
	kpack_close(NULL);
	kpack_free_kernel(NULL);
	ab_free(&a);
}

/* A string in place of a number, in every numeric field. */
TEST(numbers_that_are_text_fail_at_open)
{
	static const char *const tables[] = {
		"{'compression_scheme': 'none', 'toc': {}, 'blobs': [{'offset': 'x', "
		"'size': 0}]}",
		"{'compression_scheme': 'none', 'toc': {}, 'blobs': [{'offset': 0, "
		"'size': 'x'}]}",
		"{'compression_scheme': 'zstd-per-kernel', 'toc': {}, 'zstd_offset': 'x',"
		"'zstd_size': 4}",
		"{'compression_scheme': 'zstd-per-kernel', 'toc': {}, 'zstd_offset': 0,"
		"'zstd_size': 'x'}",
		"{'toc': {'lib/x.so': {'gfx900': {'ordinal': 'x', 'original_size': 0}}}}",
		"{'toc': {'lib/x.so': {'gfx900': {'ordinal': 0, 'original_size': 'x'}}}}",
	};

	for (size_t i = 0; i < COUNT(tables); i++) {
		struct ab a = ab_new(16);
		kpack_archive_t archive = NULL;
		char path[32];
		int fd;

		ab_toc_text(&a, tables[i]);
		fd = ab_memfd(a.bytes, a.size, path);
		assert_int_equal(kpack_open(path, &archive),
				 KPACK_ERROR_MSGPACK_PARSE_FAILED);
		assert_null(archive);
		close(fd);
		ab_free(&a);
	}
	{
		kpack_archive_t archive = NULL;
		assert_int_equal(kpack_open("/nonexistent.kpack", &archive),
				 KPACK_ERROR_FILE_NOT_FOUND);
	}
}

/* An object too large to hold in memory is refused before any is allocated. */
TEST(objects_beyond_the_limit_are_not_allocated)
{
	struct ab a = ab_new_zstd();
	kpack_archive_t archive;
	size_t size, large = 2 << 20;
	uint8_t *zeros = calloc(1, large);
	void *data;

	assert_non_null(zeros);
	ab_stored(&a, zeros, large); /* a frame of this size could decode to 64 GiB */
	ab_toc(&a,
	       "{'compression_scheme': 'zstd-per-kernel', 'zstd_offset': 64, "
	       "'zstd_size': %zu,"
	       "'toc': {'a': {'x': {'ordinal': 0, 'original_size': 34359738368, "
	       "'metadata': {"
	       "'chunk': 4096}}, 'y': {'ordinal': 0, 'original_size': 34359738368}}}}",
	       a.size - 64);
	archive = opened(&a);
	assert_int_equal(kp_archive_entry_count(archive), 1);
	assert_int_equal(kpack_get_kernel(archive, "a", "x", &data, &size),
			 KPACK_ERROR_OUT_OF_MEMORY);
	/* without chunks it would have to be decoded at once */
	assert_int_equal(kpack_get_kernel(archive, "a", "y", &data, &size),
			 KPACK_ERROR_KERNEL_NOT_FOUND);
	kpack_close(archive);
	ab_free(&a);
	free(zeros);
}

/* --- threads -------------------------------------------------------------------------- */

struct worker {
	kpack_archive_t archive;
	const uint8_t *data;
	unsigned number, wrong;
};

static void *work(void *arg)
{
	static const struct {
		const char *name, *arch;
		size_t offset, size;
	} kernels[] = {
		{"lib/libhip.so#0", "gfx1100", 0, 1019},
		{"lib/libhip.so", "gfx1101", 1, 619},
		{"bin/hiptest#0", "gfx1100", 2, 1018},
	};
	struct worker *w = arg;

	for (unsigned i = 0; i < 50; i++) {
		size_t k = (w->number + i) % COUNT(kernels), size = 0, n = 0;
		const char *text;
		void *data = NULL;

		if (kpack_get_kernel(w->archive, kernels[k].name, kernels[k].arch, &data,
				     &size) ||
		    size != kernels[k].size ||
		    memcmp(data, w->data + kernels[k].offset, size) != 0)
			w->wrong++;
		kpack_free_kernel(data);
		if (kpack_get_binary_count(w->archive, &n) || n != 2 ||
		    kpack_get_binary(w->archive, 1, &text) ||
		    kpack_get_kernel(w->archive, "none", "gfx1100", &data, &size) !=
			    KPACK_ERROR_KERNEL_NOT_FOUND)
			w->wrong++;
	}
	return NULL;
}

TEST(eight_threads_share_an_archive)
{
	uint8_t *data = ab_data(1024, 1);
	struct ab a = fixture(data);
	kpack_archive_t archive = opened(&a);
	struct worker workers[8];
	pthread_t threads[8];

	for (unsigned i = 0; i < COUNT(threads); i++) {
		workers[i] = (struct worker){archive, data, i, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < COUNT(threads); i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(workers[i].wrong, 0);
	}
	kpack_close(archive);
	ab_free(&a);
	free(data);
}
