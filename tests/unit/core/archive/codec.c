/* SPDX-License-Identifier: MIT */
#include "core/archive/codec.h"
#include "tests/unit/archive_builder.h"
#include "core/base/bounds.h"
#include "core/archive/raw_frame.h"
#include "core/archive/seekable.h"
#include "tests/unit/unit.h"

static struct kpackx_error why;

static struct kp_encoder *encoder(int level)
{
	struct kp_encoder *e = NULL;

	assert_int_equal(kp_encoder_new(level, &e, &why), KPACK_SUCCESS);
	return e;
}

static struct ab encode(struct kp_encoder *e, const uint8_t *data, size_t size,
			uint64_t chunk)
{
	size_t cap = kp_encode_bound(size, chunk);
	struct ab out = {.bytes = malloc(cap)};

	assert_non_null(out.bytes);
	assert_int_equal(kp_encode(e, (struct kp_span){data, size}, chunk, out.bytes, cap,
				   &out.size, &why),
			 KPACK_SUCCESS);
	assert_true(out.size <= cap);
	return out;
}

/* --- incompressible data ----------------------------------------------------------------- */

/* Incompressible bytes, the same every time. */
static uint8_t *noise(size_t size)
{
	uint8_t *data = malloc(size + 8);
	uint64_t x = 88172645463325252u;

	assert_non_null(data);
	for (size_t i = 0; i < size; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		kp_put_le64(data + i, x);
	}
	return data;
}

/* Sizes at which the frame header or the number of blocks changes. */
static const size_t raw_sizes[] = {0,      1,      63,     64,     255,    256,
				   257,    65535,  65791,  65792,  131071, 131072,
				   131073, 262144, 262145, 1000000};
enum { RAW_MAX = 1000000 };

/*
 * The size of the header before the first block, from the bits of the frame's descriptor.
 */
static size_t frame_head(const uint8_t *frame)
{
	static const size_t fields[] = {0, 2, 4, 8};
	bool single = frame[4] & 32;
	size_t field = fields[frame[4] >> 6];

	return 5 + !single + (field || !single ? field : 1);
}

/* Check that the frame consists of raw blocks with these bytes. */
static void assert_raw(const uint8_t *data, size_t size, struct kp_span frame)
{
	size_t at = frame_head(frame.data), done = 0;
	bool last = false;

	while (!last) {
		uint32_t block;

		assert_true(at + 3 <= frame.size);
		block = frame.data[at] | (uint32_t)frame.data[at + 1] << 8 |
			(uint32_t)frame.data[at + 2] << 16;
		last = block & 1;
		assert_int_equal(block >> 1 & 3, 0);
		assert_true(size - done >= block >> 3);
		assert_memory_equal(frame.data + at + 3, data + done, block >> 3);
		done += block >> 3;
		at += 3 + (block >> 3);
	}
	assert_int_equal(done, size);
	assert_int_equal(at + 4, frame.size);
}

static struct ab raw_frame(const uint8_t *data, size_t size)
{
	struct ab out = {.bytes = malloc(kp_raw_frame_size(size)),
			 .size = kp_raw_frame_size(size)};

	assert_non_null(out.bytes);
	kp_raw_frame_write((struct kp_span){data, size}, out.bytes);
	return out;
}

TEST(frames_of_bytes_as_they_are_are_read)
{
	uint8_t *data = noise(RAW_MAX), *back = malloc(RAW_MAX);

	assert_non_null(back);
	for (size_t i = 0; i < COUNT(raw_sizes); i++) {
		struct ab out = raw_frame(data, raw_sizes[i]);
		struct kp_span stored = {out.bytes, out.size};
		uint64_t stated;

		assert_raw(data, raw_sizes[i], stored);
		assert_true(out.bytes[4] & 4); /* it has a checksum */
		assert_true(kp_zstd_content_size(stored, &stated));
		assert_int_equal(stated, raw_sizes[i]);
		assert_int_equal(kp_zstd_decode(stored, back, raw_sizes[i], &why),
				 KPACK_SUCCESS);
		assert_memory_equal(back, data, raw_sizes[i]);
		/* and the checksum is verified */
		out.bytes[out.size - 1] ^= 1;
		assert_int_equal(kp_zstd_decode(stored, back, raw_sizes[i], &why),
				 KPACK_ERROR_DECOMPRESSION_FAILED);
		ab_free(&out);
	}
	free(back);
	free(data);
}

/* A compressible part is compressed only if that saves more than 1/64 of the whole. */
TEST(only_what_pays_is_compressed)
{
	enum { SIZE = 640000 };
	static const size_t zeros[] = {0, 5000, 9000, 12000, 20000, 100000};
	struct kp_encoder *e = encoder(3);

	for (size_t i = 0; i < COUNT(zeros); i++) {
		uint8_t *data = noise(SIZE);
		struct ab out;

		memset(data + 1000, 0, zeros[i]);
		out = encode(e, data, SIZE, 0);
		if (zeros[i] < SIZE / 64)
			assert_raw(data, SIZE, (struct kp_span){out.bytes, out.size});
		else
			assert_true(out.size < SIZE - SIZE / 64);
		ab_free(&out);
		free(data);
	}
	kp_encoder_free(e);
}

/* --- seek tables -------------------------------------------------------------------- */

static kpack_error_t read_table(const void *bytes, size_t size, struct kp_seek_row **rows,
				uint32_t *n)
{
	struct kp_source s = kp_source_memory(bytes, size);

	return kp_seek_table_read(&s, rows, n, &why);
}

TEST(wrong_seek_tables_are_refused)
{
	static const struct {
		int at; /* offset from the end */
		uint32_t value;
	} lies[] = {
		{9, 0},
		{9, 2},
		{9, 4},
		{9, UINT32_MAX},
		{9, 0x20000000},
		{9, 0x15555555},
		{4, 0x8f92eab0},
		{17, 0},
		{25, UINT32_MAX},
		{9 + 3 * 8 + 8, 0x184d2a5d},
		{9 + 3 * 8 + 4, 0},
		{9 + 3 * 8 + 4, UINT32_MAX},
	};
	uint8_t *data = ab_data(10000, 1);
	struct ab a = ab_seekable(data, 10000, 4096, false);

	for (size_t i = 0; i < COUNT(lies); i++) {
		uint8_t *copy = malloc(a.size);
		struct kp_seek_row *rows;
		uint32_t n;

		assert_non_null(copy);
		memcpy(copy, a.bytes, a.size);
		kp_put_le32(copy + a.size - lies[i].at, lies[i].value);
		if (read_table(copy, a.size, &rows, &n) != KPACK_ERROR_INVALID_FORMAT)
			fail_msg("row %zu", i);
		free(copy);
	}
	for (unsigned bit = 2; bit < 8;
	     bit++) { /* reserved bits, and the checksum flag without checksums */
		struct kp_seek_row *rows;
		uint32_t n;

		a.bytes[a.size - 5] = (uint8_t)(1u << bit);
		assert_int_equal(read_table(a.bytes, a.size, &rows, &n),
				 KPACK_ERROR_INVALID_FORMAT);
	}
	ab_free(&a);
	free(data);
}

/* --- frame index -------------------------------------------------------------------- */

TEST(an_index_has_at_most_so_many_frames)
{
	size_t n = (size_t)KP_FRAMES_MAX + 2;
	uint8_t *index = malloc(8 * n);
	uint32_t count;

	assert_non_null(index);
	for (size_t i = 0; i < n; i++)
		kp_put_le64(index + 8 * i, 4 + 4 * i);
	assert_int_equal(kp_frame_index_check((struct kp_span){index, 8 * (n - 1)},
					      4 * (n - 1), &count, &why),
			 KPACK_SUCCESS);
	assert_int_equal(count, KP_FRAMES_MAX);
	assert_int_equal(
		kp_frame_index_check((struct kp_span){index, 8 * n}, 4 * n, &count, &why),
		KPACK_ERROR_INVALID_FORMAT);
	free(index);
}
