/* SPDX-License-Identifier: MIT */
/* The entries of an archive: describing them, and reading them whole or in part. */
#include "tests/unit/archive_builder.h"
#include "core/base/bounds.h"
#include "core/rocm_kpack/kpack_design.h"
#include "core/rocm_kpack/kpackx.h"
#include <malloc.h>
#include <pthread.h>
#include "tests/unit/unit.h"

static struct kpackx_error why;

static kpack_archive_t opened(struct ab *a)
{
	kpack_archive_t archive = NULL;

	if (ab_open(a, &archive, &why) != KPACK_SUCCESS)
		fail_msg("open: %s", why.text);
	ab_free(a);
	return archive;
}

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
	       "'zstd_size': "
	       "%zu, 'toc': {'b#0': {'y': {'type': 'co', 'ordinal': 0, 'original_size': "
	       "100}, 'gfx90a:xnack+': {'ordinal': 0, 'original_size': 100, 'metadata': "
	       "{}}}, 'a/gfx942/k.dat': {'type': 'dat', 'ordinal': 1, 'original_size': "
	       "20000, 'metadata': {'chunk': 4096}}}}",
	       a.size - 64);
	archive = opened(&a);
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

TEST(indices_are_checked)
{
	struct kpackx_entry e, before;
	struct ab a = ab_new(64);
	kpack_archive_t archive;
	uint8_t buf[8] = "untouch";
	size_t n = 77;

	memset(&e, 0xff, sizeof(e));
	before = e;
	ab_put(&a, "0123", 4);
	ab_toc(&a,
	       "{'blobs': [{'offset': 64, 'size': 4}], 'toc': {'a': {'x': {'ordinal': "
	       "0}}}}");
	archive = opened(&a);
	for (size_t index = 1; index; index <<= 1) {
		assert_int_equal(kpackx_get_entry(archive, index, &e),
				 KPACK_ERROR_INVALID_ARGUMENT);
		assert_int_equal(kpackx_read_entry(archive, index, buf, 8, &why),
				 KPACK_ERROR_INVALID_ARGUMENT);
		assert_int_equal(kpackx_read_range(archive, index, 0, buf, 8, &n, &why),
				 KPACK_ERROR_INVALID_ARGUMENT);
	}
	assert_int_equal(kpackx_get_entry_count(NULL, &n), KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpackx_get_entry(NULL, 0, &e), KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpackx_find_entry(NULL, "a", "x", &n),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpackx_read_entry(NULL, 0, buf, 8, &why),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpackx_read_range(NULL, 0, 0, buf, 8, &n, &why),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_memory_equal(&e, &before, sizeof(e));
	assert_string_equal(buf, "untouch");
	assert_int_equal(n, 77);
	kpack_close(archive);
}

TEST(entries_are_read_into_the_callers_buffer)
{
	uint8_t *data = ab_data(5000, 2), buf[5008];

	for (int scheme = 0; scheme < 2; scheme++) {
		struct ab a = scheme ? ab_new_zstd() : ab_new(64);
		kpack_archive_t archive;

		if (scheme)
			ab_frame(&a, data, 5000);
		else
			ab_put(&a, data, 5000);
		ab_toc(&a,
		       "{%s, 'zstd_offset': 64, 'zstd_size': %zu, 'blobs': [{'offset': "
		       "64, 'size': %zu}], 'toc': {'a': {'x': {'ordinal': 0, "
		       "'original_size': 5000}}}}",
		       scheme ? "'compression_scheme': 'zstd-per-kernel'"
			      : "'compression_scheme': 'none'",
		       a.size - 64, a.size - 64);
		archive = opened(&a);
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
	ab_toc(&a, "{'blobs': [{'offset': 64, 'size': 4}], 'toc': {'a#0': {'x': "
		   "{'ordinal': 0}}}}");
	archive = opened(&a);
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

/* --- parts ---------------------------------------------------------------------------- */

enum { SIZE = 700000 };

/* Append a frame of DATA (SIZE bytes) with a window of 2^LOG bytes. */
static void put_frame(struct ab *a, const uint8_t *data, size_t size, int log,
		      bool stated)
{
	size_t cap = ZSTD_compressBound(size), n;
	uint8_t *out = malloc(cap);
	ZSTD_CCtx *zstd = ZSTD_createCCtx();

	assert_true(out && zstd);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_windowLog, log);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_contentSizeFlag, stated);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
	n = ZSTD_compress2(zstd, out, cap, data, size);
	assert_false(ZSTD_isError(n));
	ab_put(a, out, n);
	ZSTD_freeCCtx(zstd);
	free(out);
}

/* Append a frame of raw blocks whose window is 2^LOG bytes. */
static void put_wide_frame(struct ab *s, const uint8_t *data, size_t size, int log)
{
	enum { BLOCK = 100000 };

	ab_put(s, "\x28\xb5\x2f\xfd\x00", 5);
	s->bytes[s->size - 1] = 0; /* no content size, not a single segment */
	ab_put(s, &(uint8_t){(uint8_t)((log - 10) << 3)}, 1);
	for (size_t at = 0; at < size; at += BLOCK) {
		uint32_t n = size - at < BLOCK ? (uint32_t)(size - at) : BLOCK;

		ab_put32(s, n << 3 | (at + n == size));
		s->size--; /* a raw block's header has three bytes */
		ab_put(s, data + at, n);
	}
}

static kpack_archive_t opened_stored(struct ab *stored, size_t size, const char *metadata)
{
	struct ab a = ab_new_zstd();

	ab_stored(&a, stored->bytes, stored->size);
	ab_free(stored);
	ab_toc(&a,
	       "{'compression_scheme': 'zstd-per-kernel', 'zstd_offset': 64, "
	       "'zstd_size': "
	       "%zu, 'toc': {'a': {'x': {'ordinal': 0, 'original_size': %zu, 'metadata': "
	       "%s}}}}",
	       a.size - 64, size, metadata);
	return opened(&a);
}

static kpack_archive_t opened_plain(const uint8_t *data, size_t size)
{
	struct ab a = ab_new(64);

	ab_put(&a, data, size);
	ab_toc(&a,
	       "{'blobs': [{'offset': 64, 'size': %zu}], 'toc': {'a': {'x': {'ordinal': "
	       "0}}}}",
	       size);
	return opened(&a);
}

/* An archive that stores the bytes in way number WAY. */
static kpack_archive_t opened_way(const uint8_t *data, unsigned way)
{
	struct ab s = {0};

	switch (way) {
	case 0:
		return opened_plain(data, SIZE);
	case 1: /* the window is the size of the entry */
		put_frame(&s, data, SIZE, 24, true);
		break;
	case 2:
		put_frame(&s, data, SIZE, 14, true);
		break;
	case 3:
		put_frame(&s, data, SIZE, 17, false);
		break;
	case 4: /* several frames, with a skippable frame between them */
		put_frame(&s, data, 300000, 16, true);
		ab_put(&s, "\x50\x2a\x4d\x18\3\0\0\0abc", 11);
		put_frame(&s, data + 300000, SIZE - 300000, 15, false);
		break;
	case 5:
		s = ab_seekable(data, SIZE, 4096, true);
		return opened_stored(&s, SIZE, "{'chunk': 4096}");
	case 6:
		s = ab_seekable(data, SIZE, 65537, false);
		return opened_stored(&s, SIZE, "{'chunk': 65537}");
	case 7: /* a later frame has a window too wide to hold */
		put_frame(&s, data, 300000, 16, true);
		put_wide_frame(&s, data + 300000, SIZE - 300000, 28);
		break;
	case 8: /* so does a frame after a skippable one */
		ab_put(&s, "\x50\x2a\x4d\x18\3\0\0\0abc", 11);
		put_wide_frame(&s, data, SIZE, 31);
		break;
	default:
		return NULL;
	}
	return opened_stored(&s, SIZE, "{}");
}

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

TEST(ranges_are_parts_of_the_entry)
{
	static const struct {
		uint64_t offset;
		size_t size;
	} cases[] = {
		{0, 0},
		{0, 1},
		{0, SIZE - 1},
		{0, SIZE},
		{0, SIZE_MAX},
		{1, SIZE},
		{SIZE - 1, 1},
		{SIZE - 1, 2},
		{SIZE, 0},
		{SIZE, 1},
		{SIZE + 1, 1},
		{UINT64_MAX, 1},
		{UINT64_MAX, SIZE_MAX},
		{UINT64_MAX - 4, 10},
		{4096, 4096},
		{4095, 4098},
		{65536, 65537},
		{65537, 65537},
		{131072, 200000},
		{299999, 2},
		{SIZE - SIZE % 4096, SIZE % 4096},
	};
	uint8_t *data = ab_data(SIZE, 3);
	kpack_archive_t archive;
	uint32_t seed = 5;

	for (unsigned way = 0; (archive = opened_way(data, way)) != NULL; way++) {
		for (size_t i = 0; i < COUNT(cases); i++)
			check_range(archive, data, cases[i].offset, cases[i].size);
		for (int i = 0; i < 40; i++) {
			uint64_t offset;

			seed = seed * 1664525 + 1013904223;
			offset = seed % SIZE;
			seed = seed * 1664525 + 1013904223;
			check_range(archive, data, offset,
				    seed >> 28 ? seed % 10000 : seed % SIZE);
		}
		kpack_close(archive);
	}
	free(data);
}

static kpack_error_t range(kpack_archive_t archive, uint64_t offset, size_t size)
{
	uint8_t *buf = malloc(size + 1);
	size_t got = 77;
	kpack_error_t err;

	assert_non_null(buf);
	why = (struct kpackx_error){0};
	err = kpackx_read_range(archive, 0, offset, buf, size, &got, &why);
	if (err) {
		assert_int_equal(got, 77);
		assert_true(why.code == err && why.text[0]);
		assert_string_equal(kpack_get_last_error(archive), why.text);
	} else {
		assert_int_equal(got, size);
	}
	free(buf);
	return err;
}

TEST(empty_entries_have_no_parts)
{
	struct ab s = {0};
	kpack_archive_t archive;
	uint8_t buf[4];
	size_t got = 7;

	put_frame(&s, (const uint8_t *)"", 0, 20, true);
	archive = opened_stored(&s, 0, "{}");
	assert_int_equal(kpackx_read_range(archive, 0, 0, buf, 4, &got, &why),
			 KPACK_SUCCESS);
	assert_int_equal(got, 0);
	assert_int_equal(kpackx_read_entry(archive, 0, buf, 0, &why), KPACK_SUCCESS);
	kpack_close(archive);
}

/* --- false sizes ---------------------------------------------------------------------- */

/* The entry states a size other than the frame's SIZE bytes. */
TEST(entries_that_lie_are_found_out)
{
	uint8_t *data = ab_data(SIZE, 4);

	for (int stated = 0; stated < 2; stated++) {
		for (int log = 14; log <= 24; log += 10) {
			struct ab s = {0};
			kpack_archive_t archive;

			put_frame(&s, data, SIZE, log, stated);
			archive = opened_stored(&s, SIZE + 1000, "{}");
			assert_int_equal(range(archive, SIZE - 1000, 1001),
					 KPACK_ERROR_DECOMPRESSION_FAILED);
			assert_int_equal(range(archive, SIZE + 10, 5),
					 KPACK_ERROR_DECOMPRESSION_FAILED);
			assert_int_equal(range(archive, 0, SIZE + 1000),
					 KPACK_ERROR_DECOMPRESSION_FAILED);
			kpack_close(archive);

			put_frame(&s, data, SIZE, log, stated);
			archive = opened_stored(&s, SIZE - 1000, "{}");
			assert_int_equal(range(archive, SIZE - 3000, 2000),
					 KPACK_ERROR_DECOMPRESSION_FAILED);
			assert_int_equal(range(archive, 0, SIZE - 1000),
					 KPACK_ERROR_DECOMPRESSION_FAILED);
			kpack_close(archive);
		}
	}
	free(data);
}

/* A range is given away only if the checksum that covers it matches. */
TEST(of_what_is_cut_or_changed_no_range_is_read)
{
	uint8_t *data = ab_data(SIZE, 4);
	struct ab s = {0};
	kpack_archive_t archive;
	uint8_t *frame;

	put_frame(&s, data, SIZE, 14, true);
	s.bytes[s.size - 1] ^= 1; /* the checksum */
	archive = opened_stored(&s, SIZE, "{}");
	assert_int_equal(range(archive, 5000, 10), KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_int_equal(range(archive, SIZE - 10, 10), KPACK_ERROR_DECOMPRESSION_FAILED);
	kpack_close(archive);

	put_frame(&s, data, SIZE, 14, true);
	s.size /= 2;
	archive = opened_stored(&s, SIZE, "{}");
	assert_int_equal(range(archive, 5000, 10), KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_int_equal(range(archive, SIZE - 10, 10), KPACK_ERROR_DECOMPRESSION_FAILED);
	kpack_close(archive);

	s = ab_seekable(data, SIZE, 4096, false);
	frame = memmem(s.bytes + s.size / 2, s.size / 2, "\x28\xb5\x2f\xfd", 4);
	assert_non_null(frame);
	*frame ^= 0x55; /* damages a chunk in the middle */
	archive = opened_stored(&s, SIZE, "{'chunk': 4096}");
	check_range(archive, data, 0, 100000);
	check_range(archive, data, SIZE - 100000, 100000);
	assert_int_equal(range(archive, 0, SIZE - 1), KPACK_ERROR_INVALID_FORMAT);
	assert_int_equal(range(archive, 0, SIZE), KPACK_ERROR_INVALID_FORMAT);
	kpack_close(archive);

	s = ab_seekable(data, SIZE, 4096, false);
	archive = opened_stored(&s, SIZE + 1, "{'chunk': 4096}");
	assert_int_equal(range(archive, 0, 10), KPACK_ERROR_INVALID_FORMAT);
	kpack_close(archive);
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
	for (int log = 20; log <= 31; log++) {
		struct ab s = {0};
		kpack_archive_t archive;

		put_wide_frame(&s, data, SIZE, log);
		archive = opened_stored(&s, SIZE, "{}");
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
	archive = opened_stored(&s, (size_t)BLOCKS * BLOCK, "{}");
	assert_int_equal(kpackx_read_range(archive, 0, 3 * BLOCK - 2, buf, 4, &got, &why),
			 KPACK_SUCCESS);
	assert_int_equal(got, 4);
	assert_memory_equal(buf, "\2\2\3\3", 4);
	kpack_close(archive);
}

TEST(a_part_does_not_cost_the_whole)
{
	size_t size = 160 << 20;
	uint8_t *zeros = calloc(1, size), buf[16];
	struct ab s = {0};
	kpack_archive_t archive;
	long long before;
	size_t got = 0;

	assert_non_null(zeros);
	put_frame(&s, zeros, size, 20, true);
	free(zeros);
	archive = opened_stored(&s, size, "{}");
	before = peak_kib(true);
	assert_int_equal(kpackx_read_range(archive, 0, size - 20, buf, 16, &got, &why),
			 KPACK_SUCCESS);
	assert_int_equal(got, 16);
	assert_true(peak_kib(false) - before < 32 << 10);
	assert_memory_equal(buf, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	kpack_close(archive);
}

/* --- threads -------------------------------------------------------------------------- */

struct reading {
	kpack_archive_t archive;
	const uint8_t *data;
	unsigned number, wrong;
};

static void *read_parts(void *arg)
{
	struct reading *w = arg;
	uint8_t buf[3000];

	for (unsigned i = 0; i < 20; i++) {
		uint64_t offset = (w->number * 7919 + i * 31337) % (SIZE - sizeof(buf));
		size_t got = 0;

		if (kpackx_read_range(w->archive, 0, offset, buf, sizeof(buf), &got,
				      NULL) ||
		    got != sizeof(buf) || memcmp(buf, w->data + offset, got) != 0)
			w->wrong++;
		if (kpackx_read_entry(w->archive, 0, buf, sizeof(buf), NULL) !=
		    KPACK_ERROR_INVALID_ARGUMENT)
			w->wrong++;
	}
	return NULL;
}

TEST(eight_threads_read_parts)
{
	uint8_t *data = ab_data(SIZE, 4);
	kpack_archive_t archive;

	for (unsigned way = 0; (archive = opened_way(data, way)) != NULL; way++) {
		struct reading workers[8];
		pthread_t threads[8];

		for (unsigned i = 0; i < COUNT(threads); i++) {
			workers[i] = (struct reading){archive, data, i, 0};
			assert_int_equal(pthread_create(&threads[i], NULL, read_parts,
							&workers[i]),
					 0);
		}
		for (unsigned i = 0; i < COUNT(threads); i++) {
			assert_int_equal(pthread_join(threads[i], NULL), 0);
			assert_int_equal(workers[i].wrong, 0);
		}
		kpack_close(archive);
	}
	free(data);
}
