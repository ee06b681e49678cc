/* SPDX-License-Identifier: MIT */
/*
 * AMD's tests of the archive calls: test_archive_integration.cpp and test_kpack_api.cpp.
 * Above each test is AMD's name for it.
 */
#include <pthread.h>
#include "tests/unit/amd_fixtures.h"
#include "tests/unit/unit.h"

/* ---- the fixtures ---- */

/*
 * The archives are as long as AMD's, with the table at AMD's offset; for the compressed
 * one only the table's size is compared, as AMD's frames come from another zstd.
 */
TEST(the_fixtures_are_as_long_as_amds)
{
	struct ab noop = fx_plain("gfx900X", "'gfx900', 'gfx906'", fx_noop);
	struct ab zstd = fx_packed("gfx110X", "'gfx1100', 'gfx1101'", fx_zstd);
	size_t blob = zstd.bytes[8];

	assert_int_equal(noop.bytes[8] | noop.bytes[9] << 8, 570);
	assert_int_equal(noop.size, 903);
	/* a number below 128 takes a byte less than AMD's zstd_size, 134 */
	assert_int_equal(zstd.size - blob, blob - 64 < 128 ? 319 : 320);
	ab_free(&noop);
	ab_free(&zstd);
}

static void check_fixture(const char *name, const char *const arches[2],
			  const struct fx_object objects[3])
{
	kpack_archive_t archive = fx_open(name);
	const char *arch = NULL;
	size_t n = 0;

	assert_int_equal(kpack_get_architecture_count(archive, &n), KPACK_SUCCESS);
	assert_int_equal(n, 2);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(kpack_get_architecture(archive, i, &arch),
				 KPACK_SUCCESS);
		assert_string_equal(arch, arches[i]);
	}
	assert_int_equal(kpack_get_binary_count(archive, &n), KPACK_SUCCESS);
	assert_int_equal(n, 2);
	for (size_t i = 0; i < 3; i++)
		fx_check_kernel(archive, &objects[i]);
	fx_check_no_kernel(archive, "lib/nonexistent.so#0", arches[0],
			   KPACK_ERROR_KERNEL_NOT_FOUND);
	fx_check_no_kernel(archive, objects[0].key, "gfx9999",
			   KPACK_ERROR_KERNEL_NOT_FOUND);
	kpack_close(archive);
}

/* ArchiveIntegrationTest.NoOpArchive */
TEST(a_plain_archive_is_read)
{
	check_fixture("test_noop.kpack", (const char *const[]){"gfx900", "gfx906"},
		      fx_noop);
}

/* ArchiveIntegrationTest.ZstdArchive */
TEST(a_compressed_archive_is_read)
{
	check_fixture("test_zstd.kpack", (const char *const[]){"gfx1100", "gfx1101"},
		      fx_zstd);
}

static void check_binaries(const char *name, const char *const names[2])
{
	kpack_archive_t archive = fx_open(name);

	for (size_t i = 0; i < 2; i++) {
		const char *first = NULL, *again = NULL;

		assert_int_equal(kpack_get_binary(archive, i, &first), KPACK_SUCCESS);
		assert_string_equal(first, names[i]);
		assert_int_equal(kpack_get_binary(archive, i, &again), KPACK_SUCCESS);
		assert_ptr_equal(first, again);
	}
	kpack_close(archive);
}

/* ArchiveIntegrationTest.GetBinaryNames */
TEST(binaries_are_sorted_and_keep_their_address)
{
	check_binaries("test_noop.kpack",
		       (const char *const[]){"bin/testapp#0", "lib/libtest.so#0"});
}

/* ArchiveIntegrationTest.GetBinaryNames_Zstd */
TEST(binaries_of_a_compressed_archive_are_sorted)
{
	check_binaries("test_zstd.kpack",
		       (const char *const[]){"bin/hiptest#0", "lib/libhip.so#0"});
}

/* ArchiveIntegrationTest.KernelCacheOverwrite */
TEST(another_get_leaves_the_data_of_the_first)
{
	kpack_archive_t archive = fx_open("test_zstd.kpack");
	void *data[3] = {0};
	size_t size[3];

	for (size_t i = 0; i < 3; i++) { /* the third repeats the first */
		const struct fx_object *o = &fx_zstd[i % 2];

		assert_int_equal(
			kpack_get_kernel(archive, o->key, o->arch, &data[i], &size[i]),
			KPACK_SUCCESS);
	}
	for (size_t i = 0; i < 3; i++)
		assert_true(fx_is(data[i], size[i], &fx_zstd[i % 2]));
	assert_ptr_not_equal(data[0], data[2]);
	for (size_t i = 0; i < 3; i++)
		kpack_free_kernel(data[i]);
	kpack_close(archive);
}

struct worker {
	kpack_archive_t archive;
	const struct fx_object *objects; /* three objects */
	int good;
};

static void *get_fifty(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < 50; i++) {
		const struct fx_object *o = &w->objects[i % 3];
		void *data = NULL;
		size_t size = 0;

		w->good += !kpack_get_kernel(w->archive, o->key, o->arch, &data, &size) &&
			   fx_is(data, size, o);
		kpack_free_kernel(data);
	}
	return NULL;
}

/* ArchiveIntegrationTest.ThreadSafety_ConcurrentGetKernel */
TEST(eight_threads_get_fifty_times_each)
{
	kpack_archive_t archives[] = {fx_open("test_noop.kpack"),
				      fx_open("test_zstd.kpack")};
	const struct fx_object *const objects[] = {fx_noop, fx_zstd};
	struct worker workers[8];
	pthread_t threads[8];

	for (size_t a = 0; a < 2; a++) {
		for (size_t i = 0; i < 8; i++) {
			workers[i] = (struct worker){archives[a], objects[a], 0};
			assert_int_equal(
				pthread_create(&threads[i], NULL, get_fifty, &workers[i]),
				0);
		}
		for (size_t i = 0; i < 8; i++) {
			pthread_join(threads[i], NULL);
			assert_int_equal(workers[i].good, 50);
		}
		kpack_close(archives[a]);
	}
}

/* ---- arguments ---- */

/* KpackAPITest.NullArguments */
TEST(null_arguments_are_refused)
{
	kpack_archive_t archive = NULL;
	char path[FX_PATH];
	const char *arch;
	void *data;
	size_t n;

	fx_path("test_noop.kpack", path);
	assert_int_equal(kpack_open(NULL, &archive), KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_open(path, NULL), KPACK_ERROR_INVALID_ARGUMENT);
	assert_null(archive);
	assert_int_equal(kpack_get_architecture_count(NULL, &n),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_architecture(NULL, 0, &arch),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_binary_count(NULL, &n), KPACK_ERROR_INVALID_ARGUMENT);
	archive = fx_open("test_noop.kpack");
	assert_int_equal(kpack_get_architecture(archive, 0, NULL),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_kernel(NULL, "a", "gfx900", &data, &n),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_kernel(archive, NULL, "gfx900", &data, &n),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_kernel(archive, "a", NULL, &data, &n),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_kernel(archive, "a", "gfx900", NULL, &n),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_kernel(archive, "a", "gfx900", &data, NULL),
			 KPACK_ERROR_INVALID_ARGUMENT);
	kpack_close(archive);
}

/* KpackAPITest.FileNotFound */
TEST(a_missing_file_has_its_own_error)
{
	kpack_archive_t archive = NULL;
	char path[FX_PATH];

	assert_int_equal(kpack_open(fx_path("nonexistent.kpack", path), &archive),
			 KPACK_ERROR_FILE_NOT_FOUND);
	assert_null(archive);
}

/* KpackAPITest.CloseNull */
TEST(closing_null_does_nothing)
{
	kpack_close(NULL);
}

/* KpackAPITest.FreeKernel_Null */
TEST(freeing_a_null_kernel_does_nothing)
{
	kpack_free_kernel(NULL);
}

/* KpackAPITest.GetBinary_NullArchive */
TEST(a_binary_of_no_archive_is_refused)
{
	const char *name = "untouched";

	assert_int_equal(kpack_get_binary(NULL, 0, &name), KPACK_ERROR_INVALID_ARGUMENT);
	assert_string_equal(name, "untouched");
}

/* KpackAPITest.GetBinary_NullBinaryOut, .GetBinaryCount_NullCount,
 * .GetArchitectureCount_NullCount */
TEST(outputs_that_are_null_are_refused)
{
	kpack_archive_t archive = fx_open("test_noop.kpack");

	assert_int_equal(kpack_get_binary(archive, 0, NULL),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_binary_count(archive, NULL),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_architecture_count(archive, NULL),
			 KPACK_ERROR_INVALID_ARGUMENT);
	kpack_close(archive);
}

static void check_range(kpack_error_t (*get)(kpack_archive_t, size_t, const char **))
{
	static const size_t beyond[] = {2, 3, 1000, SIZE_MAX};
	kpack_archive_t archive = fx_open("test_noop.kpack");
	const char *text = NULL;

	assert_int_equal(get(archive, 1, &text), KPACK_SUCCESS);
	text = NULL;
	for (size_t i = 0; i < COUNT(beyond); i++)
		assert_int_equal(get(archive, beyond[i], &text),
				 KPACK_ERROR_INVALID_ARGUMENT);
	assert_null(text);
	kpack_close(archive);
}

/* KpackAPITest.GetBinary_IndexOutOfRange */
TEST(binaries_beyond_the_last_are_refused)
{
	check_range(kpack_get_binary);
}

/* KpackAPITest.GetArchitecture_IndexOutOfRange */
TEST(architectures_beyond_the_last_are_refused)
{
	check_range(kpack_get_architecture);
}

/* ---- files that are no archives ---- */

/* KpackAPITest.InvalidArchive_EmptyFile */
TEST(an_empty_file_is_an_io_error)
{
	struct ab a = {0};

	ab_put(&a, "", 0);
	fx_refused(&a, KPACK_ERROR_IO_ERROR);
}

/* KpackAPITest.InvalidArchive_TruncatedHeader */
TEST(a_cut_header_is_no_archive)
{
	for (size_t size = 1; size < 16; size++) {
		struct ab a = ab_new(16);

		a.size = size;
		fx_refused(&a, KPACK_ERROR_INVALID_FORMAT);
	}
}

/* KpackAPITest.InvalidArchive_WrongMagic */
TEST(another_magic_is_no_archive)
{
	for (size_t i = 0; i < 4; i++) {
		struct ab a = ab_new(64);

		ab_toc(&a, "{'toc': {}}");
		a.bytes[i] ^= 0x20;
		fx_refused(&a, KPACK_ERROR_INVALID_FORMAT);
	}
}

/* KpackAPITest.InvalidArchive_UnsupportedVersion */
TEST(another_version_is_unsupported)
{
	static const uint32_t versions[] = {0, 2, 999, 0x01000000, UINT32_MAX};

	for (size_t i = 0; i < COUNT(versions); i++) {
		struct ab a = ab_new(64);

		ab_toc(&a, "{'toc': {}}");
		ab_set_le(a.bytes + 4, versions[i], 4);
		fx_refused(&a, KPACK_ERROR_UNSUPPORTED_VERSION);
	}
}

/* KpackAPITest.InvalidArchive_TOCOffsetBeyondFile */
TEST(a_table_beyond_the_file_is_no_archive)
{
	static const uint64_t beyond[] = {0, 1, 1000000, UINT64_MAX / 2, UINT64_MAX};

	for (size_t i = 0; i < COUNT(beyond); i++) {
		struct ab a = ab_new(64);

		ab_toc(&a, "{'toc': {}}");
		ab_set_le(a.bytes + 8, beyond[i] < 64 ? a.size + beyond[i] : beyond[i],
			  8);
		fx_refused(&a, KPACK_ERROR_INVALID_FORMAT);
	}
}

/* ---- tables that lie ---- */

/*
 * InvalidNumericTocFieldTest.ReturnsParseError with its six parameters; the table follows
 * the header, as in AMD's test
 */
TEST(text_where_a_number_belongs_is_no_table)
{
	static const char *const tables[] = {
		/* Offset */
		"{'compression_scheme': 'none', 'toc': {}, "
		"'blobs': [{'offset': 'x', 'size': 0}]}",
		/* Size */
		"{'compression_scheme': 'none', 'toc': {}, "
		"'blobs': [{'offset': 0, 'size': 'x'}]}",
		/* ZstdOffset */
		"{'compression_scheme': 'zstd-per-kernel', 'toc': {}, "
		"'zstd_offset': 'x', 'zstd_size': 4}",
		/* ZstdSize */
		"{'compression_scheme': 'zstd-per-kernel', 'toc': {}, "
		"'zstd_offset': 0, 'zstd_size': 'x'}",
		/* Ordinal */
		"{'toc': {'lib/x.so': {'gfx900': {'ordinal': 'x', 'original_size': 0}}}}",
		/* OriginalSize */
		"{'toc': {'lib/x.so': {'gfx900': {'ordinal': 0, 'original_size': 'x'}}}}",
	};

	for (size_t i = 0; i < COUNT(tables); i++) {
		struct ab a = ab_new(16);

		ab_toc(&a, "%s", tables[i]);
		fx_refused(&a, KPACK_ERROR_MSGPACK_PARSE_FAILED);
	}
}

/* The peak memory that this process has used. */
static long peak_kib(void)
{
	char line[256];
	long kib = 0;
	FILE *f = fopen("/proc/self/status", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "VmPeak: %ld", &kib);
	fclose(f);
	return kib;
}

/* OversizedTocDeclarationTest.ReturnsParseError with its five parameters */
TEST(a_declared_size_beyond_the_bytes_is_no_table)
{
	static const char *const heads[] = {
		"\xdd\xff\xff\xff\xff", /* Array */
		"\xdf\xff\xff\xff\xff", /* Map */
		"\xdb\xff\xff\xff\xff", /* String */
		"\xc6\xff\xff\xff\xff", /* Binary */
		"\xc9\xff\xff\xff\xff", /* Extension */
	};
	long before = peak_kib();

	for (size_t i = 0; i < COUNT(heads); i++) {
		struct ab whole = ab_new(16), field = ab_new(16), toc = ab_new(16);

		/* as the TOC itself, as an unknown field, and as the value of "toc" */
		ab_set_le(whole.bytes + 8, whole.size, 8);
		ab_put(&whole, heads[i], 5);
		ab_put(&whole, "\1", i == 4); /* an extension has a type byte */
		fx_refused(&whole, KPACK_ERROR_MSGPACK_PARSE_FAILED);
		ab_set_le(field.bytes + 8, field.size, 8);
		ab_put(&field, "\x81\xa1x", 3);
		ab_put(&field, heads[i], 5);
		ab_put(&field, "\1", i == 4);
		fx_refused(&field, KPACK_ERROR_MSGPACK_PARSE_FAILED);
		ab_set_le(toc.bytes + 8, toc.size, 8);
		ab_put(&toc, "\x81\xa3toc", 5);
		ab_put(&toc, heads[i], 5);
		ab_put(&toc, "\1", i == 4);
		fx_refused(&toc, KPACK_ERROR_MSGPACK_PARSE_FAILED);
	}
	assert_true(peak_kib() - before < 256 * 1024);
}

/* TestUtilsTest.TestAssetsAccess */
TEST(the_fixtures_can_be_read)
{
	static const char *const names[] = {"test_noop.kpack", "test_zstd.kpack",
					    "test_fallthrough_xnack.kpack",
					    "test_fallthrough_generic.kpack"};
	char path[FX_PATH];

	for (size_t i = 0; i < COUNT(names); i++)
		assert_int_equal(access(fx_path(names[i], path), R_OK), 0);
}

SUITE(fx_make, fx_remove);
