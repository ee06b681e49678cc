/* SPDX-License-Identifier: MIT */
#include "core/writer/encode.h"
#include "core/archive/frames.h"
#include "tests/unit/archive_builder.h"
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
			assert_true(out.size > SIZE); /* raw blocks */
		else
			assert_true(out.size < SIZE - SIZE / 64);
		ab_free(&out);
		free(data);
	}
	kp_encoder_free(e);
}
