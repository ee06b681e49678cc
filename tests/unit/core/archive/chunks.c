/* SPDX-License-Identifier: MIT */
#include "tests/unit/archive_builder.h"
#include "core/codec/codec.h"
#include "core/codec/seekable.h"
#include "core/base/bounds.h"
#include "tests/unit/unit.h"

static struct kpackx_error why;

/*
 * An archive of one chunked entry: the bytes STORED, with SIZE and CHUNK as its metadata
 * states.
 */
static struct kpack_archive *opened(const void *stored, size_t stored_size, size_t size,
				    uint64_t chunk)
{
	struct kpack_archive *archive = NULL;
	struct ab a = ab_new_zstd();

	ab_stored(&a, stored, stored_size);
	ab_toc(&a,
	       "{'compression_scheme': 'zstd-per-kernel', 'zstd_offset': 64, "
	       "'zstd_size': %zu,"
	       "'toc': {'a': {'x': {'ordinal': 0, 'original_size': %zu, 'metadata': "
	       "{'chunk':"
	       "%llu}}}}}",
	       a.size - 64, size, (unsigned long long)chunk);
	if (ab_open(&a, &archive, &why) != KPACK_SUCCESS)
		fail_msg("%s", why.text);
	assert_int_equal(kp_archive_entry_count(archive), 1);
	ab_free(&a);
	return archive;
}

static void assert_chunks(const struct ab *stored, const uint8_t *data, size_t size,
			  size_t chunk)
{
	struct kpack_archive *archive = opened(stored->bytes, stored->size, size, chunk);
	struct kp_chunks *c = NULL;
	uint64_t count = size ? (size + chunk - 1) / chunk : 1;

	if (kp_chunks_open(archive, 0, &c, &why) != KPACK_SUCCESS)
		fail_msg("%zu in %zu: %s", size, chunk, why.text);
	assert_int_equal(kp_chunks_count(c), count);
	assert_int_equal(kp_chunks_size(c), chunk);
	for (uint64_t k = count; k--;) { /* in any order: last to first */
		size_t begin = (size_t)k * chunk,
		       n = size - begin < chunk ? size - begin : chunk;
		uint8_t *buf = malloc(n ? n : 1);

		assert_non_null(buf);
		if (kp_chunks_read(c, k, buf, &why) != KPACK_SUCCESS)
			fail_msg("chunk %llu: %s", (unsigned long long)k, why.text);
		assert_memory_equal(buf, data + begin, n);
		free(buf);
	}
	kp_chunks_close(c);
	kp_archive_close(archive);
}

TEST(chunks_are_read)
{
	static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 8192, 8193, 20000, 65536};
	uint8_t *data = ab_data(65536, 3);
	struct kp_encoder *e;

	assert_int_equal(kp_encoder_new(3, &e, &why), KPACK_SUCCESS);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		for (size_t chunk = 4096; chunk <= 131072; chunk *= 32) {
			struct ab a = ab_seekable(data, sizes[i], chunk, false);
			struct ab b = ab_seekable(data, sizes[i], chunk, true);
			struct ab ours = {
				.bytes = malloc(kp_encode_bound(sizes[i], chunk))};

			assert_int_equal(kp_encode(e, (struct kp_span){data, sizes[i]},
						   chunk, ours.bytes,
						   kp_encode_bound(sizes[i], chunk),
						   &ours.size, &why),
					 KPACK_SUCCESS);
			assert_chunks(&a, data, sizes[i], chunk);
			assert_chunks(&b, data, sizes[i], chunk);
			assert_chunks(&ours, data, sizes[i], chunk);
			ab_free(&a);
			ab_free(&b);
			ab_free(&ours);
		}
	}
	kp_encoder_free(e);
	free(data);
}

/* Records and runs of zeros, in which an encoder uses offsets again wherever it may. */
TEST(chunks_refer_to_nothing_before_them)
{
	static const int levels[] = {-5, 1, 3, 6, 9, 13, 16, 19};
	size_t size = 600000;
	uint8_t *data = calloc(1, size);

	assert_non_null(data);
	for (size_t i = 0; i < size; i++)
		if (i % 64 < 24 || i / 4096 % 3 == 0)
			data[i] = (uint8_t)(i % 64 * (i / 1024 % 5) + (i % 1000 == 0));
	for (size_t i = 0; i < COUNT(levels); i++) {
		for (size_t chunk = 4096; chunk <= 131072; chunk *= 32) {
			struct ab a = {.bytes = malloc(kp_encode_bound(size, chunk))};
			struct kp_encoder *e;

			assert_int_equal(kp_encoder_new(levels[i], &e, &why),
					 KPACK_SUCCESS);
			assert_int_equal(kp_encode(e, (struct kp_span){data, size}, chunk,
						   a.bytes, kp_encode_bound(size, chunk),
						   &a.size, &why),
					 KPACK_SUCCESS);
			assert_true(ZSTD_getFrameContentSize(a.bytes, a.size) == size);
			assert_chunks(&a, data, size, chunk);
			kp_encoder_free(e);
			ab_free(&a);
		}
	}
	free(data);
}

/* Open and read all chunks; returns the first error. */
static kpack_error_t try_chunks(const struct kpack_archive *a)
{
	struct kp_chunks *c = NULL;
	kpack_error_t err = kp_chunks_open(a, 0, &c, &why);
	uint8_t *buf;

	if (err) {
		assert_null(c);
		return err;
	}
	buf = malloc((size_t)kp_chunks_size(c));
	assert_non_null(buf);
	for (uint64_t k = 0; k < kp_chunks_count(c) && !err; k++)
		err = kp_chunks_read(c, k, buf, &why);
	kp_chunks_close(c);
	free(buf);
	return err;
}

static void assert_wrong(const void *stored, size_t stored_size, size_t size,
			 uint64_t chunk)
{
	struct kpack_archive *a = opened(stored, stored_size, size, chunk);
	kpack_error_t err = try_chunks(a);

	if (err != KPACK_ERROR_INVALID_FORMAT)
		fail_msg("%d: %zu bytes in chunks of %llu", (int)err, size,
			 (unsigned long long)chunk);
	kp_archive_close(a);
}

/* Incompressible chunks take many stored bytes, which are not all read at once. */
TEST(chunks_that_do_not_compress)
{
	size_t size = (1 << 20) + 5, chunk = 500000;
	uint8_t *data = malloc(size);
	uint32_t x = 1;
	struct ab a;

	for (size_t i = 0; i < size; i++) {
		x = x * 1664525 + 1013904223;
		data[i] = (uint8_t)(x >> 24);
	}
	a = ab_seekable(data, size, chunk, false);
	assert_true(a.size > size);
	assert_chunks(&a, data, size, chunk);
	ab_free(&a);
	free(data);
}

TEST(other_sizes_than_the_tables_are_refused)
{
	static const size_t sizes[] = {0, 1, 9999, 10001, 4096, 12288, 12289, 100000};
	static const uint64_t chunks[] = {
		0, 1, 4095, 4097, 8192, KP_CHUNK_MAX + 1, UINT64_MAX};
	uint8_t *data = ab_data(10000, 3);
	struct ab a = ab_seekable(data, 10000, 4096, false);

	for (size_t i = 0; i < COUNT(sizes); i++)
		assert_wrong(a.bytes, a.size, sizes[i], 4096);
	for (size_t i = 0; i < COUNT(chunks); i++)
		assert_wrong(a.bytes, a.size, 10000, chunks[i]);
	ab_free(&a);
	free(data);
}

TEST(a_missing_table_is_refused)
{
	uint8_t *data = ab_data(10000, 3);
	struct ab a = {0};

	ab_put_frame(&a, data, 10000);
	assert_wrong(a.bytes, a.size, 10000, 4096);
	assert_wrong(a.bytes, a.size, 10000, 16384);
	ab_free(&a);
	free(data);
}

/* Change the seek table's words one after another. */
TEST(a_table_that_lies_is_refused)
{
	uint8_t *data = ab_data(10000, 3);
	struct ab a = ab_seekable(data, 10000, 4096, false);
	size_t rows = a.size - 9 - 3 * 8;

	for (size_t at = rows - 8; at + 4 <= a.size; at += 4) {
		uint32_t word = kp_le32(a.bytes + at);

		if (at == a.size - 9 + 4) /* the descriptor is a single byte */
			at -= 3;
		kp_put_le32(a.bytes + at, word + 1);
		assert_wrong(a.bytes, a.size, 10000, 4096);
		kp_put_le32(a.bytes + at, word);
	}
	/* correct sums, wrong rows */
	kp_put_le32(a.bytes + rows, kp_le32(a.bytes + rows) - 1);
	kp_put_le32(a.bytes + rows + 8, kp_le32(a.bytes + rows + 8) + 1);
	assert_wrong(a.bytes, a.size, 10000, 4096);
	ab_free(&a);
	free(data);
}

/* The rows' sums are correct, but the first row covers two frames. */
TEST(a_row_must_be_one_frame)
{
	uint8_t *data = ab_data(8192, 3);
	struct ab a = {0}, table = {0};
	size_t first, second;

	first = ab_put_frame(&a, data, 2048);
	first += ab_put_frame(&a, data + 2048, 2048); /* two frames in one row */
	second = ab_put_frame(&a, data + 4096, 4096);
	ab_put32(&table, 0x184d2a5e);
	ab_put32(&table, 2 * 8 + 9);
	ab_put32(&table, (uint32_t)first);
	ab_put32(&table, 4096);
	ab_put32(&table, (uint32_t)second);
	ab_put32(&table, 4096);
	ab_put32(&table, 2);
	ab_put(&table, "", 1);
	ab_put32(&table, 0x8f92eab1);
	ab_put(&a, table.bytes, table.size);
	assert_wrong(a.bytes, a.size, 8192, 4096);
	ab_free(&table);
	ab_free(&a);
	free(data);
}

TEST(corrupt_chunks_fail_alone)
{
	uint8_t *data = ab_data(16384, 3), buf[4096];
	struct kp_encoder *e;
	struct ab a = {.bytes = malloc(kp_encode_bound(16384, 4096))};
	struct kpack_archive *archive;
	struct kp_source source;
	struct kp_seek_row *rows;
	struct kp_chunks *c;
	uint32_t n;

	assert_int_equal(kp_encoder_new(3, &e, &why), KPACK_SUCCESS);
	assert_int_equal(kp_encode(e, (struct kp_span){data, 16384}, 4096, a.bytes,
				   kp_encode_bound(16384, 4096), &a.size, &why),
			 KPACK_SUCCESS);
	kp_encoder_free(e);
	source = kp_source_memory(a.bytes, a.size);
	assert_int_equal(kp_seek_table_read(&source, &rows, &n, &why), KPACK_SUCCESS);
	a.bytes[rows[0].stored + 500] ^= 0x10; /* in the second chunk */
	free(rows);
	archive = opened(a.bytes, a.size, 16384, 4096);
	assert_int_equal(kp_chunks_open(archive, 0, &c, &why), KPACK_SUCCESS);
	for (uint64_t k = 0; k < 4; k++) {
		kpack_error_t err = kp_chunks_read(c, k, buf, &why);

		assert_int_equal(err != KPACK_SUCCESS, k == 1);
		if (k != 1)
			assert_memory_equal(buf, data + 4096 * k, 4096);
	}
	kp_chunks_close(c);
	kp_chunks_close(NULL);
	kp_archive_close(archive);
	ab_free(&a);
	free(data);
}

/* The first error of reading all, or a part, of an entry with the byte at AT changed. */
static void assert_sum_counts(struct ab *stored, size_t at, size_t size, size_t chunk)
{
	uint8_t *buf = malloc(size);

	assert_non_null(buf);
	for (int bad = 0; bad < 2; bad++) {
		kpack_error_t want =
			bad ? KPACK_ERROR_DECOMPRESSION_FAILED : KPACK_SUCCESS;
		struct kpack_archive *a;

		stored->bytes[at] ^= (uint8_t)bad;
		a = opened(stored->bytes, stored->size, size, chunk);
		assert_int_equal(kp_archive_read(a, 0, buf, &why), want);
		assert_int_equal(kp_archive_read_fast(a, 0, buf, &why), want);
		kp_archive_close(a);
	}
	free(buf);
}

/* Of a seek table, and of a frame of all chunks, which decoding the other does not meet. */
TEST(whole_entries_have_all_checksums)
{
	enum { SIZE = 300000, CHUNK = 65536, ROWS = 5, TABLE = 8 + 12 * ROWS + 9 };
	uint8_t *data = ab_data(SIZE, 3), *buf = malloc(SIZE);
	struct ab a = ab_seekable(data, SIZE, CHUNK, true);
	struct ab ours = {.bytes = malloc(kp_encode_bound(SIZE, CHUNK))};
	struct kpack_archive *archive;
	struct kp_encoder *e;
	size_t got;

	assert_sum_counts(&a, a.size - TABLE + 8 + 12 + 8, SIZE, CHUNK);
	ab_free(&a);

	assert_int_equal(kp_encoder_new(3, &e, &why), KPACK_SUCCESS);
	assert_int_equal(kp_encode(e, (struct kp_span){data, SIZE}, CHUNK, ours.bytes,
				   kp_encode_bound(SIZE, CHUNK), &ours.size, &why),
			 KPACK_SUCCESS);
	kp_encoder_free(e);
	assert_sum_counts(&ours, ours.size - TABLE - 1, SIZE, CHUNK);
	archive = opened(ours.bytes, ours.size, SIZE, CHUNK);
	assert_int_equal(kp_archive_read_range(archive, 0, 70000, buf, 10, &got, &why),
			 KPACK_ERROR_DECOMPRESSION_FAILED);
	kp_archive_close(archive);
	ab_free(&ours);
	free(buf);
	free(data);
}

TEST(plain_entries_have_no_chunks)
{
	struct kpack_archive *archive = NULL;
	struct kp_chunks *c = NULL;
	struct ab a = ab_new(64);

	ab_put(&a, "data", 4);
	ab_toc(&a, "{'blobs': [{'offset': 64, 'size': 4}], 'toc': {'a': {'x': "
		   "{'ordinal': 0}, 'y':"
		   "{'ordinal': 0, 'metadata': {'chunk': 4096}}}}}");
	assert_int_equal(ab_open(&a, &archive, &why), KPACK_SUCCESS);
	assert_int_equal(kp_chunks_open(archive, 0, &c, &why),
			 KPACK_ERROR_INVALID_FORMAT);
	assert_int_equal(kp_chunks_open(archive, 1, &c, &why),
			 KPACK_ERROR_INVALID_FORMAT);
	kp_archive_close(archive);
	ab_free(&a);
}
