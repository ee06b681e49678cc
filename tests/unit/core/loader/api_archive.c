/* SPDX-License-Identifier: MIT */
#include "core/rocm_kpack/kpack.h"
#include "core/rocm_kpack/kpackx.h"
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
	       "{'format_version': 1, 'group_name': 'test', 'gfx_arch_family': "
	       "'gfx110X','gfx_arches': ['gfx1100', 'gfx1101'], 'toc': "
	       "{'lib/libhip.so#0': {'gfx1100':{'type': 'hsaco', 'ordinal': 0, "
	       "'original_size': 1019}, 'gfx1101': {'type':'hsaco', 'ordinal': 1, "
	       "'original_size': 619}}, 'bin/hiptest#0': {'gfx1100': {'type': 'hsaco', "
	       "'ordinal': 2, 'original_size': 1018}}}, "
	       "'compression_scheme':'zstd-per-kernel', 'zstd_offset': 64, 'zstd_size': "
	       "%zu}",
	       a.size - 64);
	return a;
}

TEST(an_archive_is_queried)
{
	uint8_t *data = ab_data(1024, 1);
	struct ab a = fixture(data);
	kpack_archive_t archive = opened(&a);
	const char *text = NULL, *again = NULL, **arches = NULL;
	void *first = NULL, *second = NULL;
	size_t n = 0;

	assert_int_equal(kpack_get_architecture_count(archive, &n), KPACK_SUCCESS);
	assert_int_equal(n, 2);
	assert_int_equal(kpack_get_architecture(archive, 1, &text), KPACK_SUCCESS);
	assert_string_equal(text, "gfx1101");
	assert_int_equal(kpack_get_architectures(archive, &arches, &n), KPACK_SUCCESS);
	assert_true(n == 2 && arches[1] == text && !arches[2]);
	assert_int_equal(kpackx_get_group(archive, &text, &again), KPACK_SUCCESS);
	assert_string_equal(text, "test");
	assert_string_equal(again, "gfx110X");
	assert_int_equal(kpack_get_binary_count(archive, &n), KPACK_SUCCESS);
	assert_int_equal(n, 2);
	assert_int_equal(kpack_get_binary(archive, 0, &text), KPACK_SUCCESS);
	assert_string_equal(text, "bin/hiptest#0");
	assert_int_equal(kpack_get_binary(archive, 0, &again), KPACK_SUCCESS);
	assert_ptr_equal(text, again);
	for (size_t beyond = 2; beyond; beyond <<= 1) {
		assert_int_equal(kpack_get_binary(archive, beyond, &text),
				 KPACK_ERROR_INVALID_ARGUMENT);
		assert_int_equal(kpack_get_architecture(archive, beyond, &text),
				 KPACK_ERROR_INVALID_ARGUMENT);
	}
	assert_string_equal(text, "bin/hiptest#0");
	/* kernels are the caller's, also when the archive is closed */
	assert_int_equal(
		kpack_get_kernel(archive, "lib/libhip.so#0", "gfx1100", &first, &n),
		KPACK_SUCCESS);
	assert_int_equal(n, 1019);
	assert_int_equal(
		kpack_get_kernel(archive, "lib/libhip.so#0", "gfx1100", &second, &n),
		KPACK_SUCCESS);
	assert_ptr_not_equal(first, second);
	kpack_close(archive);
	assert_memory_equal(first, data, 1019);
	assert_memory_equal(second, data, 1019);
	kpack_free_kernel(first);
	kpack_free_kernel(second);
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
		   "{'offset':72, 'size': 4}], 'toc': {'a#0': {'x': @0}, 'a#1': {'x': "
		   "@1}, 'b': {'x': @2}, 'c': {'x': @2}, 'c#0': {'x': @0}, 'd#/e.so#0': "
		   "{'x': @1}}}");
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

/* Of an open archive, the other calls with NULL are in last_error.c. */
TEST(arguments_that_are_null_are_refused)
{
	kpack_archive_t none = NULL;
	const char *text;
	const char **texts;
	size_t n;
	void *data;
	struct kpackx_entry e;
	const kpack_error_t got[] = {
		kpack_open(NULL, &none),
		kpack_open("/dev/null", NULL),
		kpack_get_architecture_count(NULL, &n),
		kpack_get_architecture(NULL, 0, &text),
		kpack_get_binary_count(NULL, &n),
		kpack_get_binary(NULL, 0, &text),
		kpack_get_architectures(NULL, &texts, &n),
		kpackx_get_group(NULL, &text, &text),
		kpack_list_kernels(NULL, "a", "x", &texts, &n),
		kpack_get_kernel_metadata(NULL, "a", "x", &text, &n),
		kpack_get_kernel(NULL, "a", "x", &data, &n),
		kpackx_get_entry_count(NULL, &n),
		kpackx_get_entry(NULL, 0, &e),
		kpackx_find_entry(NULL, "a", "x", &n),
		kpackx_read_entry(NULL, 0, &e, 8, NULL),
		kpackx_read_range(NULL, 0, 0, &e, 8, &n, NULL),
	};

	for (size_t i = 0; i < COUNT(got); i++)
		assert_int_equal(got[i], KPACK_ERROR_INVALID_ARGUMENT);
	kpack_close(NULL);
	kpack_free_kernel(NULL);
}

/* A string in place of a number, in every numeric field. */
TEST(numbers_that_are_text_fail_at_open)
{
	static const char *const tables[] = {
		"'blobs': [{'offset': 'x', 'size': 0}]",
		"'blobs': [{'offset': 0, 'size': 'x'}]",
		"'compression_scheme': 'zstd-per-kernel', 'zstd_offset': 'x', "
		"'zstd_size': 4",
		"'compression_scheme': 'zstd-per-kernel', 'zstd_offset': 0, 'zstd_size': "
		"'x'",
		"'toc': {'a': {'x': {'ordinal': 'x', 'original_size': 0}}}",
		"'toc': {'a': {'x': {'ordinal': 0, 'original_size': 'x'}}}",
	};
	kpack_archive_t archive = NULL;

	for (size_t i = 0; i < COUNT(tables); i++) {
		struct ab a = ab_new(16);

		ab_toc(&a, "{%s, 'toc': {}}", tables[i]);
		assert_int_equal(ab_open(&a, &archive, NULL),
				 KPACK_ERROR_MSGPACK_PARSE_FAILED);
		assert_null(archive);
		ab_free(&a);
	}
	assert_int_equal(kpack_open("/nonexistent.kpack", &archive),
			 KPACK_ERROR_FILE_NOT_FOUND);
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
	       "'zstd_size': %zu,'toc': {'a': {'x': {'ordinal': 0, 'original_size': "
	       "34359738368, 'metadata': {'chunk': 4096}}, 'y': {'ordinal': 0, "
	       "'original_size': 34359738368}}}}",
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

enum { THREADS = 8 };

struct worker {
	kpack_archive_t archive;
	pthread_barrier_t *barrier;
	const uint8_t *data;
	unsigned number, wrong;
	const void *answers[4]; /* which are the same for all threads */
};

static bool gets_kernel(struct worker *w, unsigned k)
{
	static const struct {
		const char *name, *arch;
		size_t offset, size;
	} kernels[] = {
		{"lib/libhip.so#0", "gfx1100", 0, 1019},
		{"lib/libhip.so", "gfx1101", 1, 619},
		{"bin/hiptest#0", "gfx1100", 2, 1018},
	};
	const uint8_t *want = w->data + kernels[k].offset;
	size_t size = 0, got = 0, index;
	void *data = NULL;
	uint8_t part[100];
	bool right = !kpack_get_kernel(w->archive, kernels[k].name, kernels[k].arch,
				       &data, &size) &&
		     size == kernels[k].size && memcmp(data, want, size) == 0;

	kpack_free_kernel(data);
	return right &&
	       !kpackx_find_entry(w->archive, kernels[k].name, kernels[k].arch, &index) &&
	       !kpackx_read_range(w->archive, index, 500, part, 100, &got, NULL) &&
	       got == 100 && memcmp(part, want + 500, 100) == 0;
}

/* The archive has this thread's last error, and no other one's. */
static bool keeps_error(struct worker *w, unsigned i)
{
	char name[32], want[64];
	size_t n;

	snprintf(name, sizeof(name), "t%u-%u", w->number, i);
	snprintf(want, sizeof(want), "no entry %s for x", name);
	return kpackx_find_entry(w->archive, name, "x", &n) ==
		       KPACK_ERROR_KERNEL_NOT_FOUND &&
	       strcmp(kpack_get_last_error(w->archive), want) == 0;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	const char **names, *json;
	size_t n;

	pthread_barrier_wait(w->barrier);
	w->wrong += kpack_get_last_error(w->archive)[0] != '\0';
	w->wrong +=
		kpack_list_kernels(w->archive, "lib", "gfx1101", &names, &n) || n != 1;
	w->answers[0] = names;
	w->wrong += kpack_list_kernels(w->archive, "", "gfx1100", &names, &n) || n != 2;
	w->answers[1] = names;
	w->wrong += kpack_get_architectures(w->archive, &names, &n) || n != 2;
	w->answers[2] = names;
	w->wrong += kpack_get_kernel_metadata(w->archive, "bin/hiptest", "gfx1100", &json,
					      &n) ||
		    n != strlen(json);
	w->answers[3] = json;
	for (unsigned i = 0; i < 50; i++)
		w->wrong += !gets_kernel(w, (w->number + i) % 3) + !keeps_error(w, i);
	return NULL;
}

TEST(threads_share_an_archive)
{
	uint8_t *data = ab_data(1024, 1);
	struct ab a = fixture(data);

	for (int round = 0; round < 10; round++) {
		kpack_archive_t archive = opened(&a);
		struct worker workers[THREADS];
		pthread_t threads[THREADS];
		pthread_barrier_t barrier;

		pthread_barrier_init(&barrier, NULL, THREADS);
		for (unsigned i = 0; i < THREADS; i++) {
			workers[i] = (struct worker){archive, &barrier, data, i, 0, {0}};
			assert_int_equal(
				pthread_create(&threads[i], NULL, work, &workers[i]), 0);
		}
		for (unsigned i = 0; i < THREADS; i++) {
			assert_int_equal(pthread_join(threads[i], NULL), 0);
			assert_int_equal(workers[i].wrong, 0);
			assert_memory_equal(workers[i].answers, workers[0].answers,
					    sizeof(workers[0].answers));
		}
		assert_string_equal(kpack_get_last_error(archive), "");
		pthread_barrier_destroy(&barrier);
		kpack_close(archive);
	}
	ab_free(&a);
	free(data);
}
