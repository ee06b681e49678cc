/* SPDX-License-Identifier: MIT */
/* The entries of an archive: describing them, and reading them whole or in part. */
#include "tests/unit/archive_builder.h"
#include "core/base/bounds.h"
#include "core/rocm_kpack/kpack_design.h"
#include "core/rocm_kpack/kpackx.h"
#include <malloc.h>
#include "tests/unit/hooks.h"
#include "tests/unit/unit.h"

static struct kpackx_error why;

/* --- descriptions --------------------------------------------------------------------- */

static struct kpackx_entry entry_of(kpack_archive_t archive, const char *name,
				    const char *arch)
{
	struct kpackx_entry e;
	size_t index;

	memset(&e, 0xff, sizeof(e));
	assert_int_equal(kpackx_find_entry(archive, name, arch, &index), KPACK_SUCCESS);
	assert_int_equal(kpackx_get_entry(archive, index, &e), KPACK_SUCCESS);
	assert_int_equal(e.reserved0, 0);
	for (size_t i = 0; i < COUNT(e.reserved); i++)
		assert_int_equal(e.reserved[i], 0);
	return e;
}

TEST(entries_are_described)
{
	uint8_t *data = ab_data(20000, 1);
	struct ab a = ab_new_zstd(), chunked = ab_seekable(data, 20000, 4096, false);
	size_t chunked_size = chunked.size, n = 0;
	struct kpackx_entry e;
	kpack_archive_t archive;

	ab_frame(&a, data, 100);
	ab_stored(&a, chunked.bytes, chunked.size);
	ab_toc(&a,
	       "{'compression_scheme': 'zstd-per-kernel', 'zstd_offset': 64, "
	       "'zstd_size': %zu, 'toc': {'b#0': {'y': {'type': 'co', 'ordinal': 0, "
	       "'original_size': 100}, 'gfx90a:xnack+': {'ordinal': 0, 'original_size': "
	       "100, 'metadata': {}}}, 'a/gfx942/k.dat': {'type': 'dat', 'ordinal': 1, "
	       "'original_size': 20000, 'metadata': {'chunk': 4096}}}}",
	       a.size - 64);
	archive = ab_opened(&a);
	assert_int_equal(kpackx_get_entry_count(archive, &n), KPACK_SUCCESS);
	assert_int_equal(n, 3);

	assert_int_equal(kpackx_get_entry(archive, 0, &e), KPACK_SUCCESS);
	assert_string_equal(e.binary, "a/gfx942/k.dat");
	assert_string_equal(e.arch, "gfx942"); /* the middle of the key */
	assert_string_equal(e.type, "dat");
	assert_int_equal(e.size, 20000);
	assert_int_equal(e.stored_size, chunked_size);
	assert_int_equal(e.chunk, 4096);
	assert_int_equal(e.ordinal, 1);
	assert_int_equal(e.metadata_size, 10);
	assert_memory_equal(e.metadata,
			    "\x81\xa5"
			    "chunk\xcd\x10\x00",
			    10);

	e = entry_of(archive, "b", "gfx90a:xnack+");
	assert_string_equal(e.binary, "b#0");
	assert_string_equal(e.arch, "gfx90a:xnack+");
	assert_string_equal(e.type, "hsaco");
	assert_int_equal(e.metadata_size, 1);
	assert_memory_equal(e.metadata, "\x80", 1);

	e = entry_of(archive, "b#0", "y");
	assert_string_equal(e.arch, "y");
	assert_string_equal(e.type, "co");
	assert_int_equal(e.size, 100);
	assert_int_equal(e.ordinal, 0);
	assert_int_equal(e.chunk, 0);
	assert_null(e.metadata);
	assert_int_equal(e.metadata_size, 0);
	kpack_close(archive);
	ab_free(&chunked);
	free(data);
}

/* What fails leaves what it would have written. */
TEST(indices_are_checked)
{
	struct kpackx_entry e, before;
	struct ab a = ab_new(64);
	kpack_archive_t archive;
	char buf[8] = "untouch";
	size_t n = 77;

	memset(&e, 0xff, sizeof(e));
	before = e;
	ab_put(&a, "0123", 4);
	ab_toc(&a, "{'blobs': [{'offset': 64, 'size': 4}], 'toc': {'a': {'x': @0}}}");
	archive = ab_opened(&a);
	for (size_t index = 1; index; index <<= 1) {
		assert_int_equal(kpackx_get_entry(archive, index, &e),
				 KPACK_ERROR_INVALID_ARGUMENT);
		assert_int_equal(kpackx_read_entry(archive, index, buf, 8, &why),
				 KPACK_ERROR_INVALID_ARGUMENT);
		assert_int_equal(kpackx_read_range(archive, index, 0, buf, 8, &n, &why),
				 KPACK_ERROR_INVALID_ARGUMENT);
	}
	assert_memory_equal(&e, &before, sizeof(e));
	assert_string_equal(buf, "untouch");
	assert_int_equal(n, 77);
	kpack_close(archive);
}

TEST(entries_are_read_into_the_callers_buffer)
{
	uint8_t *data = ab_data(5000, 2), buf[5008];

	for (int scheme = 0; scheme < 2; scheme++) {
		struct ab stored = {0};
		kpack_archive_t archive;

		if (scheme)
			ab_put_frame(&stored, data, 5000);
		else
			ab_put(&stored, data, 5000);
		archive = ab_entry(!scheme, &stored, 5000, "{}");
		memset(buf, 0xee, sizeof(buf));
		why.code = KPACK_ERROR_NOT_IMPLEMENTED;
		assert_int_equal(kpackx_read_entry(archive, 0, buf, 5000, &why),
				 KPACK_SUCCESS);
		assert_int_equal(why.code, KPACK_ERROR_NOT_IMPLEMENTED);
		assert_memory_equal(buf, data, 5000);
		memset(buf, 0, 5000);
		assert_int_equal(kpackx_read_entry(archive, 0, buf, sizeof(buf), NULL),
				 KPACK_SUCCESS);
		assert_memory_equal(buf, data, 5000);
		assert_memory_equal(buf + 5000, "\xee\xee\xee\xee\xee\xee\xee\xee", 8);
		assert_int_equal(kpackx_read_entry(archive, 0, buf, 4999, &why),
				 KPACK_ERROR_INVALID_ARGUMENT);
		assert_string_equal(why.text, "entry 0 has 5000 bytes, the buffer 4999");
		assert_int_equal(kpackx_read_entry(archive, 0, NULL, 5000, &why),
				 KPACK_ERROR_INVALID_ARGUMENT);
		kpack_close(archive);
	}
	free(data);
}

/* Here the paper's names are defined as macros. */
TEST(the_papers_calls_have_its_shape)
{
	struct ab a = ab_new(64);
	kpack_archive_t archive;
	const void *data = NULL;
	kpack_kernel_t unused = NULL;
	size_t n = 0;

	(void)unused;
	ab_put(&a, "0123", 4);
	ab_toc(&a, "{'blobs': [{'offset': 64, 'size': 4}], 'toc': {'a#0': {'x': @0}}}");
	archive = ab_opened(&a);
	assert_int_equal(kpack_get_kernel(archive, "b", "x", &data, &n),
			 KPACK_ERROR_KERNEL_NOT_FOUND);
	assert_int_equal(kpack_get_kernel(archive, "a", "x", NULL, &n),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_get_kernel(NULL, "a", "x", &data, &n),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_true(!data && n == 0);
	assert_int_equal(kpack_get_kernel(archive, "a", "x", &data, &n), KPACK_SUCCESS);
	kpack_close(archive);
	assert_int_equal(n, 4);
	assert_memory_equal(data, "0123", 4);
	kpack_free_kernel(archive, data);
	kpack_free_kernel(NULL, NULL);
}

/* --- parts: which there are, and of what, is in tests/unit/core/archive/entry.c ------------- */

enum { SIZE = 700000 };

static void check_range(kpack_archive_t archive, const uint8_t *data, uint64_t offset,
			size_t size)
{
	size_t want = offset < SIZE ? SIZE - (size_t)offset : 0, got = SIZE_MAX;
	uint8_t *buf;

	if (want > size)
		want = size;
	buf = malloc(want + 1); /* exactly the bytes that may be written */
	assert_non_null(buf);
	buf[want] = 0xee;
	if (kpackx_read_range(archive, 0, offset, buf, size, &got, &why))
		fail_msg("%zu at %llu: %s", size, (unsigned long long)offset, why.text);
	assert_int_equal(got, want);
	if (want)
		assert_memory_equal(buf, data + offset, want);
	assert_int_equal(buf[want], 0xee);
	free(buf);
}

/* A range is given away only if the checksum that covers it matches. */
TEST(of_what_lies_or_is_damaged_no_range_is_read)
{
	static const struct {
		int more;      /* bytes that the entry states too many */
		int flip, cut; /* of the stored bytes, from the end */
		uint64_t offset;
		size_t size;
	} cases[] = {
		{1000, 0, 0, SIZE - 1000, 1001},
		{1000, 0, 0, SIZE + 10, 5},
		{-1000, 0, 0, SIZE - 3000, 2000},
		{-1000, 0, 0, 0, SIZE - 1000},
		{0, 1, 0, 5000, 10},
		{0, 1, 0, SIZE - 10, 10},
		{0, 0, 9, 5000, 10},
	};
	uint8_t *data = ab_data(SIZE, 4), *buf = malloc(SIZE + 1000);

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ab s = {0};
		kpack_archive_t archive;
		size_t got = 77;

		ab_put_window(&s, data, SIZE, 20, false);
		s.bytes[s.size - 1] ^= (uint8_t)cases[i].flip;
		s.size -= (size_t)cases[i].cut;
		archive = ab_entry(false, &s, (size_t)(SIZE + cases[i].more), "{}");
		assert_int_equal(kpackx_read_range(archive, 0, cases[i].offset, buf,
						   cases[i].size, &got, &why),
				 KPACK_ERROR_DECOMPRESSION_FAILED);
		assert_true(got == 77 && why.code && why.text[0]);
		assert_string_equal(kpack_get_last_error(archive), why.text);
		kpack_close(archive);
	}
	free(buf);
	free(data);
}

/* --- memory --------------------------------------------------------------------------- */

/* The most memory that was in use since a call with AFRESH. */
static long long peak_kib(bool afresh)
{
	char line[128];
	long long kib = -1;
	FILE *f;

	if (afresh) {
		f = fopen("/proc/self/clear_refs", "w");
		assert_non_null(f);
		fputs("5", f);
		assert_int_equal(fclose(f), 0);
	}
	f = fopen("/proc/self/status", "r");

	assert_non_null(f);
	while (kib < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "VmHWM: %lld", &kib);
	fclose(f);
	assert_true(kib > 0);
	return kib;
}

/* Windows of any width are readable, and none costs more memory than the entry. */
TEST(wide_windows_cost_no_more_than_the_entry)
{
	uint8_t *data = ab_data(SIZE, 4);
	long long before;

	/* a window that is reserved costs nothing until it is used; MALLOC_PERTURB_ would fill it */
	mallopt(M_PERTURB, 0);
	before = peak_kib(true);
	for (int log = 20; log <= 31; log += 11) {
		struct ab s = {0};
		kpack_archive_t archive;

		ab_put_wide(&s, data, SIZE, log);
		archive = ab_entry(false, &s, SIZE, "{}");
		check_range(archive, data, 5000, 10000);
		check_range(archive, data, SIZE - 10, 10);
		kpack_close(archive);
	}
	assert_true(peak_kib(false) - before < 32 << 10);
	free(data);
}

/* Entry and window are larger than what is held to decode a part. */
TEST(parts_of_large_entries_with_wide_windows)
{
	enum { BLOCK = 128 << 10, BLOCKS = 1025 };
	struct ab s = {0};
	kpack_archive_t archive;
	uint8_t buf[4];
	size_t got = 0;

	ab_put(&s, "\x28\xb5\x2f\xfd\0\x98", 6); /* a window of 512 MiB */
	for (uint32_t i = 0; i < BLOCKS; i++) {  /* runs of one byte */
		ab_put32(&s, BLOCK << 3 | 1 << 1 | (i == BLOCKS - 1));
		s.bytes[s.size - 1] = (uint8_t)i;
	}
	archive = ab_entry(false, &s, (size_t)BLOCKS * BLOCK, "{}");
	assert_int_equal(kpackx_read_range(archive, 0, 3 * BLOCK - 2, buf, 4, &got, &why),
			 KPACK_SUCCESS);
	assert_int_equal(got, 4);
	assert_memory_equal(buf, "\2\2\3\3", 4);
	kpack_close(archive);
}

/* Getting an object takes memory for the object, and reading it into a buffer takes none. */
TEST(a_kernel_is_decoded_in_place)
{
	enum { LARGE = 32 << 20, SLACK = 16 << 10 };
	uint8_t *zeros = calloc(1, LARGE), *buf = malloc(LARGE);
	void *data = NULL;
	size_t n = 0;

	mallopt(M_PERTURB, 0);
	for (int packed = 0; packed <= 1; packed++) {
		struct ab stored = {0};
		kpack_archive_t archive;
		long long before;

		if (packed)
			ab_put_frame(&stored, zeros, LARGE);
		else
			ab_put(&stored, zeros, LARGE);
		archive = ab_entry(!packed, &stored, LARGE, "{}");
		memset(buf, 1, LARGE);
		before = peak_kib(true);
		assert_int_equal(kpackx_read_entry(archive, 0, buf, LARGE, &why), 0);
		assert_true(peak_kib(false) - before < SLACK);
		assert_int_equal(kpackx_get_kernel(archive, "a", "x", &data, &n, &why),
				 0);
		assert_memory_equal(data, zeros, LARGE);
		assert_true(peak_kib(false) - before < (LARGE >> 10) + SLACK);
		kpack_free_kernel(archive, data);
		kpack_close(archive);
	}
	free(zeros);
	free(buf);
}

TEST(a_part_does_not_cost_the_whole)
{
	size_t size = 80 << 20;
	uint8_t *zeros = calloc(1, size), buf[16];
	struct ab s = {0};
	kpack_archive_t archive;
	long long before;
	size_t got = 0;

	assert_non_null(zeros);
	ab_put_window(&s, zeros, size, 20, false);
	free(zeros);
	archive = ab_entry(false, &s, size, "{}");
	before = peak_kib(true);
	assert_int_equal(kpackx_read_range(archive, 0, size - 20, buf, 16, &got, &why),
			 KPACK_SUCCESS);
	assert_int_equal(got, 16);
	assert_true(peak_kib(false) - before < 32 << 10);
	assert_memory_equal(buf, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	kpack_close(archive);
}

/* --- opening -------------------------------------------------------------------------- */

static size_t bytes_read;

static ssize_t count_pread(int fd, void *buf, size_t size, off_t offset)
{
	ssize_t n = system_pread(fd, buf, size, offset);

	bytes_read += n > 0 ? (size_t)n : 0;
	return n;
}

/* Without an index, as in AMD's archives, also the word with the length of each frame. */
TEST(opening_reads_header_table_and_index_only)
{
	enum { FRAMES = 100, HEADER = 16, SLACK = 4096 };
	uint8_t *data = ab_data(1 << 16, 1);

	for (int index = 0; index <= 1; index++) {
		struct ab a = ab_new_zstd();
		size_t toc;
		char *hex;

		for (unsigned i = 0; i < FRAMES; i++)
			ab_stored(&a, data, 1 << 16);
		toc = a.size;
		hex = ab_frame_index(&a);
		ab_toc(&a,
		       "{'compression_scheme': 'zstd-per-kernel', 'zstd_offset': 64, "
		       "'zstd_size': %zu, %s%s%s 'toc': {'k#0': {'x': {'ordinal': 0, "
		       "'original_size': %d}}}}",
		       a.size - 64, index ? "'frame_index': x'" : "", index ? hex : "",
		       index ? "'," : "", 1 << 16);
		free(hex);
		toc = a.size - toc;
		hook_pread = count_pread;
		bytes_read = 0;
		kpack_close(ab_opened(&a));
		hook_pread = NULL;
		assert_in_range(bytes_read, toc,
				HEADER + toc + 64 + (index ? 0 : (FRAMES + 1) * SLACK));
	}
	free(data);
}
