/* SPDX-License-Identifier: MIT */
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_getFrameHeader says the same of every header */
#include "core/archive/frames.h"
#include <stdlib.h>
#include "tests/unit/archive_builder.h"
#include "tests/unit/unit.h"
#include <zstd.h>

static struct kpackx_error why;

/* Whether zstd reads a header of SIZE bytes at P, and reads the same. */
static bool is_same(const uint8_t *p, size_t size)
{
	struct kp_frame_header h;
	ZSTD_frameHeader z;
	bool read = kp_frame_header_read((struct kp_span){p, size}, &h);

	assert_int_equal(read, ZSTD_getFrameHeader(&z, p, size) == 0);
	if (!read)
		return false;
	assert_int_equal(h.skippable, z.frameType == ZSTD_skippableFrame);
	if (h.skippable) {
		assert_int_equal(h.skip, z.frameContentSize);
		assert_int_equal(h.size, 8);
		return true;
	}
	assert_int_equal(h.size, z.headerSize);
	assert_int_equal(h.content, z.frameContentSize);
	assert_int_equal(h.window, z.windowSize);
	assert_int_equal(h.dictionary, z.dictID);
	assert_int_equal(h.checksum, z.checksumFlag);
	return true;
}

/* All descriptors, with all windows, cut everywhere. */
TEST(headers_are_read_as_zstd_reads_them)
{
	uint8_t frame[KP_FRAME_HEADER_MAX + 1] = {0x28, 0xb5, 0x2f, 0xfd};
	unsigned read = 0;

	for (size_t i = 6; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(37 * i);
	for (unsigned descriptor = 0; descriptor < 256; descriptor++) {
		for (unsigned window = 0; window < 256; window++) {
			frame[4] = (uint8_t)descriptor;
			frame[5] = (uint8_t)window;
			read += is_same(frame, sizeof(frame));
		}
		for (size_t size = 0; size <= sizeof(frame); size++)
			is_same(frame, size);
	}
	/* half have a reserved bit, and a quarter windows above 2 GiB */
	assert_true(read > 128 * 128 && read < 128 * 256);
	memcpy(frame, "\x50\x2a\x4d\x18\1\2\3\4", 8);
	for (unsigned i = 0; i < 256; i++) { /* skippable frames */
		frame[0] = (uint8_t)i;
		assert_int_equal(is_same(frame, 8), i >> 4 == 5);
		is_same(frame, 7);
	}
}

static uint64_t measured(const uint8_t *p, size_t size, size_t off)
{
	struct kp_source source = kp_source_memory(p, size);
	struct kp_frame_header h;
	struct kp_window w;
	uint64_t frame = 0;

	kp_window_init(&w, &source);
	return kp_frame_measure(&w, off, &h, &frame, &why) ? 0 : frame;
}

TEST(ends_are_found)
{
	size_t size = 700000, cap = ZSTD_compressBound(size), n, all;
	uint8_t *data = malloc(size), *frame = malloc(cap + 16);
	ZSTD_CCtx *z = ZSTD_createCCtx();

	/* noise, which is stored raw; then one byte, whose blocks are RLE; then text */
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(i < 300000   ? (i * i) >> 7 ^ i * 2654435761U >> 13
				    : i < 600000 ? 7
						 : i % 100);
	for (int checksum = 0; checksum < 2; checksum++) {
		ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, checksum);
		n = ZSTD_compress2(z, frame, cap, data, size);
		assert_false(ZSTD_isError(n));
		memcpy(frame + n, "\x50\x2a\x4d\x18\3\0\0\0abc", 11);
		all = n + 11;
		assert_int_equal(measured(frame, all, 0), n);
		assert_int_equal(measured(frame, all, n), 11);
		assert_int_equal(measured(frame, n / 2, 0), 0);
		assert_int_equal(measured(frame, all, 1), 0);
		assert_int_equal(why.code, KPACK_ERROR_DECOMPRESSION_FAILED);
	}
	ZSTD_freeCCtx(z);
	free(data);
	free(frame);
}

/* What is decoded in one call holds the stored bytes, other frames their window. */
TEST(memory_is_foretold)
{
	const uint64_t window = (1 << 18) + (256 << 10);
	enum { SIZE = (3 << 20) + 123 };
	struct ab large = {0}, small = {0};
	uint8_t *data = ab_data(SIZE, 5);
	struct kp_span head;

	ab_put_window(&large, data, SIZE, 18, false);
	head = (struct kp_span){large.bytes, 18};
	assert_int_equal(kp_frames_memory(head, KP_FRAMES_WHOLE, large.size, SIZE),
			 large.size);
	assert_int_equal(kp_frames_memory(head, KP_FRAMES_STEPS, large.size, SIZE),
			 window);
	assert_int_equal(kp_frames_memory(head, KP_FRAMES_PIECES, large.size, SIZE),
			 window);
	ab_put_window(&small, data, 100000, 18, false);
	head = (struct kp_span){small.bytes, 18};
	assert_int_equal(kp_frames_memory(head, KP_FRAMES_STEPS, small.size, 100000),
			 small.size);
	/* many frames: each is held alone */
	assert_true(kp_frames_memory(head, KP_FRAMES_WHOLE, 1 << 30, 1 << 30) < 1 << 20);
	ab_free(&large);
	ab_free(&small);
	free(data);
}
