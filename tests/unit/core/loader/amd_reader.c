/* SPDX-License-Identifier: MIT */
/*
 * What AMD's reader accepts, refuses and returns, row by row, where AMD's own tests do
 * not cover it; and what every reader must tolerate.  Where we refuse input that leads
 * AMD's reader to bad memory, the comment says what AMD's reader does.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include "tests/unit/amd_fixtures.h"
#include "tests/unit/unit.h"

/* ---- opening ---- */

/*
 * If open() fails: FILE_NOT_FOUND for ENOENT, else IO_ERROR.  Files that are not regular
 * cannot be read, and opening them never blocks.
 */
TEST(files_that_cannot_be_opened)
{
	static const struct {
		const char *name;
		kpack_error_t code;
	} cases[] = {
		{"none.kpack", KPACK_ERROR_FILE_NOT_FOUND},
		{"none/none.kpack", KPACK_ERROR_FILE_NOT_FOUND},
		{"dangling", KPACK_ERROR_FILE_NOT_FOUND},
		{"loop", KPACK_ERROR_IO_ERROR},
		{"directory", KPACK_ERROR_IO_ERROR},
		{"fifo", KPACK_ERROR_IO_ERROR},
	};
	char path[FX_PATH];

	assert_int_equal(symlink("nowhere", fx_path("dangling", path)), 0);
	assert_int_equal(symlink("loop", fx_path("loop", path)), 0);
	assert_int_equal(mkdir(fx_path("directory", path), 0755), 0);
	assert_int_equal(mkfifo(fx_path("fifo", path), 0644), 0);
	for (size_t i = 0; i < COUNT(cases); i++) {
		kpack_archive_t archive = NULL;

		assert_int_equal(kpack_open(fx_path(cases[i].name, path), &archive),
				 cases[i].code);
		assert_null(archive);
	}
}

/* The TOC may begin at the last byte of the file, but not after it. */
TEST(a_table_begins_inside_the_file)
{
	struct ab last = ab_new(64), behind = ab_new(64);
	kpack_archive_t archive;

	ab_put(&last, "\x80", 1);
	ab_set_le(last.bytes + 8, 64, 8);
	archive = fx_accepted(&last);
	kpack_close(archive);
	ab_put(&behind, "\x80", 1);
	ab_set_le(behind.bytes + 8, 65, 8);
	fx_refused(&behind, KPACK_ERROR_INVALID_FORMAT);
}

/*
 * A file whose writing was interrupted: AMD's reader parses the header as the TOC and
 * returns MSGPACK_PARSE_FAILED.
 */
TEST(an_archive_that_was_never_finished_is_refused)
{
	struct ab a = ab_new(64);

	ab_put(&a, "0123456789", 10);
	fx_refused(&a, KPACK_ERROR_INVALID_FORMAT);
}

/* ---- the table ---- */

static kpack_archive_t open_table(const char *toc)
{
	struct ab a = ab_new(64);

	ab_put(&a, "0123456789abcdef", 16);
	ab_toc(&a, "%s", toc);
	return fx_accepted(&a);
}

static void refuse_table(const char *toc, kpack_error_t code)
{
	struct ab a = ab_new(64);

	ab_put(&a, "0123456789abcdef", 16);
	ab_toc(&a, "%s", toc);
	fx_refused(&a, code);
}

static void check_bytes(kpack_archive_t archive, const char *key, const char *arch,
			const char *want)
{
	void *data = NULL;
	size_t size = 0;

	assert_int_equal(kpack_get_kernel(archive, key, arch, &data, &size),
			 KPACK_SUCCESS);
	assert_int_equal(size, strlen(want));
	assert_memory_equal(data, want, size);
	kpack_free_kernel(data);
}

/* Check the names of the binaries, separated by spaces, and close the archive. */
static void check_binaries(kpack_archive_t archive, const char *want)
{
	char text[256] = "";
	const char *name;
	size_t n = 0;

	assert_int_equal(kpack_get_binary_count(archive, &n), KPACK_SUCCESS);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(kpack_get_binary(archive, i, &name), KPACK_SUCCESS);
		fx_say(text, sizeof(text), "%s%s", i ? " " : "", name);
	}
	assert_string_equal(text, want);
	kpack_close(archive);
}

#define BLOBS                                                                            \
	"'blobs': [{'offset': 64, 'size': 4}, {'offset': 68, 'size': 4}, "               \
	"{'offset': 72, 'size': 4}]"
#define K0 "{'type': 'hsaco', 'ordinal': 0, 'original_size': 4}"
#define K1 "{'type': 'hsaco', 'ordinal': 1, 'original_size': 4}"
#define K2 "{'type': 'hsaco', 'ordinal': 2, 'original_size': 4}"

TEST(bytes_behind_the_table_are_accepted)
{
	struct ab a = ab_new(64);
	kpack_archive_t archive;

	ab_put(&a, "0123456789abcdef", 16);
	ab_toc(&a, "{" BLOBS ", 'toc': {'k#0': {'x': " K1 "}}}");
	ab_put(&a, "\xc1garbage", 8);
	archive = fx_accepted(&a);
	check_bytes(archive, "k#0", "x", "4567");
	kpack_close(archive);
}

/*
 * A missing scheme is "none".  AMD's reader also treats a scheme that is unknown or not a
 * string as "none", and returns compressed bytes as code.
 */
TEST(a_missing_scheme_is_none)
{
	kpack_archive_t archive =
		open_table("{" BLOBS ", 'toc': {'k#0': {'x': " K2 "}}}");

	check_bytes(archive, "k#0", "x", "89ab");
	kpack_close(archive);
	refuse_table("{'compression_scheme': 'brotli', 'toc': {}}",
		     KPACK_ERROR_NOT_IMPLEMENTED);
	refuse_table("{'compression_scheme': 7, 'toc': {}}",
		     KPACK_ERROR_MSGPACK_PARSE_FAILED);
}

/*
 * zstd_size > 4 GiB or < 4; a blob outside the file, for which AMD's reader returns
 * IO_ERROR.
 */
TEST(a_compressed_blob_must_be_possible)
{
	static const char *const places[] = {
		"'zstd_offset': 64, 'zstd_size': 4294967297",
		"'zstd_offset': 64, 'zstd_size': 3",
		"'zstd_offset': 64, 'zstd_size': 0",
		"'zstd_offset': 64, 'zstd_size': 100000",
		"'zstd_offset': 18446744073709551615, 'zstd_size': 4",
		"'zstd_offset': 64",
		"'zstd_size': 16",
	};
	char toc[160];

	for (size_t i = 0; i < COUNT(places); i++) {
		snprintf(toc, sizeof(toc),
			 "{'compression_scheme': 'zstd-per-kernel', 'toc': {}, %s}",
			 places[i]);
		refuse_table(toc, KPACK_ERROR_INVALID_FORMAT);
	}
}

TEST(keys_that_are_no_strings_are_skipped)
{
	kpack_archive_t archive =
		open_table("{1: 2, nil: 'x', [1, {}]: {}, " BLOBS ", 'toc': {7: {'x': " K0
			   "}, 'k#0': {1.5: " K0 ", 'x': {3: 4, 'ordinal': 1, "
			   "'original_size': 4, true: false}}}}");

	check_bytes(archive, "k#0", "x", "4567");
	check_binaries(archive, "k#0");
}

TEST(without_toc_there_is_no_binary)
{
	check_binaries(open_table("{}"), "");
	check_binaries(open_table("{'gfx_arches': ['gfx900'], " BLOBS "}"), "");
}

/*
 * A number of more than 32 bits: AMD's reader refuses the archive, ours only the entry.
 */
TEST(a_number_out_of_range_costs_its_entry)
{
	kpack_archive_t archive =
		open_table("{" BLOBS ", 'toc': {'k#0': {'x': " K0 ", 'y': {'ordinal': "
			   "4294967296, 'original_size': 4}, 'z': {'ordinal': -1}}}}");

	check_bytes(archive, "k#0", "x", "0123");
	fx_check_no_kernel(archive, "k#0", "y", KPACK_ERROR_KERNEL_NOT_FOUND);
	fx_check_no_kernel(archive, "k#0", "z", KPACK_ERROR_KERNEL_NOT_FOUND);
	kpack_close(archive);
}

/* The first of duplicate fields counts: in the TOC, in entries and in blobs. */
TEST(of_fields_that_come_twice_the_first_counts)
{
	kpack_archive_t archive = open_table(
		"{'compression_scheme': 'none', 'compression_scheme': 'future', "
		"'gfx_arches': ['a', 'b'], 'gfx_arches': ['c'], "
		"'blobs': [{'offset': 64, 'size': 4, 'offset': 68, 'size': 1}, "
		"{'offset': 68, 'size': 4}], 'blobs': [], 'toc': {'k#0': {'x': "
		"{'ordinal': 0, 'ordinal': 1, 'original_size': 4, 'original_size': 9}}}, "
		"'toc': {'other': {'x': " K1 "}}}");
	const char *arch = NULL;
	size_t n = 0;

	check_bytes(archive, "k#0", "x", "0123");
	assert_int_equal(kpack_get_architecture_count(archive, &n), KPACK_SUCCESS);
	assert_int_equal(n, 2);
	assert_int_equal(kpack_get_architecture(archive, 1, &arch), KPACK_SUCCESS);
	assert_string_equal(arch, "b");
	check_binaries(archive, "k#0");
}

/* The last of duplicate archs of a binary counts; duplicate binaries are merged. */
TEST(of_archs_that_come_twice_the_last_counts)
{
	kpack_archive_t archive = open_table(
		"{" BLOBS ", 'toc': {'k#0': {'x': " K0 ", 'y': " K0 ", 'x': " K1 "}, "
		"'j#0': {'x': " K0 "}, 'k#0': {'z': " K2 ", 'y': " K2 "}}}");

	check_bytes(archive, "k#0", "x", "4567");
	check_bytes(archive, "k#0", "y", "89ab");
	check_bytes(archive, "k#0", "z", "89ab");
	check_bytes(archive, "j#0", "x", "0123");
	check_binaries(archive, "j#0 k#0");
}

/* ---- what every reader must tolerate ---- */

TEST(unknown_keys_are_ignored_at_every_level)
{
	kpack_archive_t archive = open_table(
		"{'future': {'a': [1, 2, x'00']}, 'blobs': [{'offset': 64, 'crc': 'x', "
		"'size': 4}], 'toc': {'k#0': {'x': {'future': [], 'ordinal': 0, "
		"'original_size': 4, 'type': 'hsaco', 'metadata': {'target': "
		"'hipv4-amdgcn-amd-amdhsa--gfx942', 'source_prefix': 'a/b', "
		"'future': {1: nil}}}}}}");

	check_bytes(archive, "k#0", "x", "0123");
	kpack_close(archive);
}

TEST(names_may_have_colons_signs_and_no_index)
{
	kpack_archive_t archive = open_table(
		"{'gfx_arches': ['gfx90a:sramecc+:xnack-', 'gfx9-4-generic'], " BLOBS ", "
		"'toc': {'a/b.so.5.4#0': {'gfx90a:sramecc+:xnack-': " K0 ", "
		"'gfx9-4-generic': " K1 "}, 'fwd/MI300/x.co': {'gfx1250-strict': " K2
		", 'amdgcnspirv': " K0 "}}}");

	check_bytes(archive, "a/b.so.5.4#0", "gfx90a:sramecc+:xnack-", "0123");
	check_bytes(archive, "a/b.so.5.4#0", "gfx9-4-generic", "4567");
	check_bytes(archive, "fwd/MI300/x.co", "gfx1250-strict", "89ab");
	check_bytes(archive, "fwd/MI300/x.co", "amdgcnspirv", "0123");
	check_binaries(archive, "a/b.so.5.4#0 fwd/MI300/x.co");
}

/* gfx_arches neither adds kernels nor hides them. */
TEST(declared_archs_may_differ_from_those_there)
{
	kpack_archive_t archive =
		open_table("{'gfx_arches': ['gfx1', 'gfx1', 'gfx3'], " BLOBS
			   ", 'toc': {'k#0': {'gfx2': " K0 "}}}");
	size_t n = 0;

	assert_int_equal(kpack_get_architecture_count(archive, &n), KPACK_SUCCESS);
	assert_int_equal(n, 3);
	check_bytes(archive, "k#0", "gfx2", "0123");
	fx_check_no_kernel(archive, "k#0", "gfx1", KPACK_ERROR_KERNEL_NOT_FOUND);
	kpack_close(archive);
}

/* The TOC follows the header, and the blobs follow the TOC. */
TEST(a_table_may_come_before_the_blobs)
{
	static const char pad[4096];
	struct ab a = ab_new(16);
	kpack_archive_t archive;

	ab_toc(&a, "{'blobs': [{'offset': 4096, 'size': 4}], "
		   "'toc': {'k#0': {'x': " K0 "}}}");
	ab_put(&a, pad, 4096 - a.size);
	ab_put(&a, "late", 4);
	archive = fx_accepted(&a);
	check_bytes(archive, "k#0", "x", "late");
	kpack_close(archive);
}

TEST(blobs_may_be_shared_overlap_and_have_any_order)
{
	kpack_archive_t archive = open_table(
		"{'blobs': [{'offset': 72, 'size': 4}, {'offset': 64, "
		"'size': 4}, {'offset': 66, 'size': 4}], 'toc': {'k#0': "
		"{'x': " K0 ", 'y': " K1 ", 'z': " K2 "}, 'j#0': {'x': " K0 "}}}");

	check_bytes(archive, "k#0", "x", "89ab");
	check_bytes(archive, "k#0", "y", "0123");
	check_bytes(archive, "k#0", "z", "2345");
	check_bytes(archive, "j#0", "x", "89ab");
	kpack_close(archive);
}

/* Frames that are shared by entries, in any order, or used by none. */
TEST(frames_may_be_shared_and_have_any_order)
{
	struct ab a = ab_new_zstd();
	kpack_archive_t archive;

	ab_frame(&a, "zero", 4);
	ab_frame(&a, "unused", 6);
	ab_frame(&a, "", 0);
	ab_toc(&a,
	       "{'compression_scheme': 'zstd-per-kernel', 'zstd_offset': 64, "
	       "'zstd_size': %zu, 'toc': {'a#0': {'x': {'ordinal': 2, 'original_size': "
	       "0}}, 'b#0': {'x': " K0 "}, 'c#0': {'x': " K0 "}}}",
	       a.size - 64);
	archive = fx_accepted(&a);
	check_bytes(archive, "a#0", "x", "");
	check_bytes(archive, "b#0", "x", "zero");
	check_bytes(archive, "c#0", "x", "zero");
	kpack_close(archive);
}

/* More than 100,000 entries. */
TEST(many_entries_are_read)
{
	enum { N = 120000, ENTRY = 80 };
	char *toc = malloc(N * (size_t)ENTRY + 256), *at = toc;
	kpack_archive_t archive;
	char key[32];
	size_t n;

	assert_non_null(toc);
	at = stpcpy(at, "{" BLOBS ", 'toc': {");
	for (unsigned i = 0; i < N; i++)
		at += sprintf(at, "'k%06u': {'x': {'ordinal': %u, 'original_size': 4}},",
			      i * 7919 % N, i * 7919 % N % 3);
	stpcpy(at, "}}");
	archive = open_table(toc);
	free(toc);
	assert_int_equal(kpack_get_binary_count(archive, &n), KPACK_SUCCESS);
	assert_int_equal(n, N);
	for (unsigned i = 0; i < N; i += 997) {
		static const char *const want[] = {"0123", "4567", "89ab"};

		snprintf(key, sizeof(key), "k%06u", i);
		check_bytes(archive, key, "x", want[i % 3]);
	}
	kpack_close(archive);
}

/* Uncompressed archives of more than 4 GiB; most of this one is a hole. */
TEST(a_plain_archive_may_be_larger_than_4_gib)
{
	static const off_t blob = (INT64_C(5) << 30) + 7, toc = INT64_C(6) << 30;
	struct ab a = ab_new(64);
	kpack_archive_t archive;
	char path[FX_PATH];
	int fd;

	ab_toc(&a,
	       "{'blobs': [{'offset': %lld, 'size': 4}], 'toc': {'k#0': {'x': " K0 "}}}",
	       (long long)blob);
	ab_set_le(a.bytes + 8, (uint64_t)toc, 8);
	fd = open(fx_path("large", path), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, a.bytes, 64, 0), 64);
	assert_int_equal(pwrite(fd, "far ", 4, blob), 4);
	assert_int_equal(pwrite(fd, a.bytes + 64, a.size - 64, toc), a.size - 64);
	close(fd);
	ab_free(&a);
	archive = fx_open("large");
	check_bytes(archive, "k#0", "x", "far ");
	kpack_close(archive);
}

SUITE(fx_make, fx_remove);
