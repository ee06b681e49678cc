/* SPDX-License-Identifier: MIT */
/* Frames decoded in one call and in steps: the same bytes, and the same faults. */
#include "core/archive/frames.h"
#include "tests/unit/archive_builder.h"
#include "tests/unit/unit.h"

#define SIZE ((size_t)(3 << 20) + 123)

static struct kpackx_error why;
static uint8_t *data, *out;

/* A frame of SIZE bytes from DATA's byte AT, in a window of 2^LOG bytes. */
static void put_frame(struct ab *stored, size_t at, size_t size, int log, bool sized)
{
	size_t cap = ZSTD_compressBound(size), n;
	ZSTD_CCtx *z = ZSTD_createCCtx();
	uint8_t *frame = malloc(cap);

	ZSTD_CCtx_setParameter(z, ZSTD_c_windowLog, log);
	ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
	ZSTD_CCtx_setParameter(z, ZSTD_c_contentSizeFlag, sized);
	n = ZSTD_compress2(z, frame, cap, data + at, size);
	assert_false(ZSTD_isError(n));
	ab_put(stored, frame, n);
	ZSTD_freeCCtx(z);
	free(frame);
}

/* Decode STORED, STEP bytes at a time; SIZE bytes are expected. */
static kpack_error_t decode(const struct ab *stored, enum kp_frames_into into,
			    uint64_t step, size_t size, bool ignore)
{
	struct kp_source source = kp_source_memory(stored->bytes, stored->size);
	uint64_t done = 0, more = 0;
	struct kp_frames *f;
	kpack_error_t err = kp_frames_open(&source, into, &f, &why);

	assert_int_equal(err, KPACK_SUCCESS);
	memset(out, 0, SIZE);
	if (ignore)
		kp_frames_ignore_checksums(f);
	while (!err && done < size) {
		uint64_t before = done, n = size - done < step ? size - done : step;

		if (into == KP_FRAMES_PIECES) {
			uint64_t got = 0;

			err = kp_frames_decode(f, out + done, n, n, &got, &why);
			done += got;
		} else {
			err = kp_frames_decode(f, out, size, done + n, &done, &why);
		}
		if (!err && done == before)
			break;
	}
	if (!err && into == KP_FRAMES_PIECES) {
		uint8_t byte;

		err = kp_frames_decode(f, &byte, 1, 1, &more, &why);
	} else if (!err) {
		err = kp_frames_decode(f, out, size, UINT64_MAX, &done, &why);
	}
	kp_frames_close(f);
	if (!err && (done < size || more))
		return KPACK_ERROR_INVALID_FORMAT;
	return err;
}

static const enum kp_frames_into all[] = {KP_FRAMES_WHOLE, KP_FRAMES_STEPS,
					  KP_FRAMES_PIECES};
static const uint64_t steps[] = {SIZE, 256 << 10, 100001};

/* All ways of decoding STORED end with ERR and, unless NULL, TEXT. */
static void expect(const struct ab *stored, size_t size, bool ignore, kpack_error_t err,
		   const char *text)
{
	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < 3; k++) {
			why.text[0] = '\0';
			assert_int_equal(decode(stored, all[i], steps[k], size, ignore),
					 err);
			if (!err)
				assert_memory_equal(out, data, size);
			else if (text && !strstr(why.text, text))
				fail_msg("into %zu, step %zu: %s", i, k, why.text);
		}
}

static void frame(struct ab *stored, unsigned way)
{
	*stored = (struct ab){0};
	switch (way) {
	case 0: /* a single segment */
		put_frame(stored, 0, SIZE, 24, true);
		break;
	case 1:
		put_frame(stored, 0, SIZE, 18, true);
		break;
	case 2:
		put_frame(stored, 0, SIZE, 18, false);
		break;
	default: /* small and large ones, a skippable one, and an empty one */
		put_frame(stored, 0, 70000, 17, true);
		ab_put(stored, "\x50\x2a\x4d\x18\3\0\0\0abc", 11);
		put_frame(stored, 70000, 2 << 20, 17, true);
		put_frame(stored, 0, 0, 17, true);
		put_frame(stored, 70000 + (2 << 20), SIZE - 70000 - (2 << 20), 20, false);
		break;
	}
}

TEST(every_way_gives_the_bytes)
{
	for (unsigned way = 0; way < 4; way++) {
		struct ab stored;

		frame(&stored, way);
		expect(&stored, SIZE, false, KPACK_SUCCESS, NULL);
		expect(&stored, SIZE, true, KPACK_SUCCESS, NULL);
		ab_free(&stored);
	}
}

TEST(checksums_are_checked_unless_ignored)
{
	for (unsigned way = 0; way < 4; way++) {
		struct ab stored;

		frame(&stored, way);
		stored.bytes[stored.size - 1] ^= 1;
		expect(&stored, SIZE, false, KPACK_ERROR_DECOMPRESSION_FAILED,
		       "checksum");
		expect(&stored, SIZE, true, KPACK_SUCCESS, NULL);
		stored.size -= 2;
		expect(&stored, SIZE, false, KPACK_ERROR_DECOMPRESSION_FAILED,
		       "frame ends after 3145851 decoded bytes");
		expect(&stored, SIZE, true, KPACK_ERROR_DECOMPRESSION_FAILED,
		       "frame ends after 3145851 decoded bytes");
		ab_free(&stored);
	}
}

TEST(wrong_sizes)
{
	for (unsigned way = 0; way < 4; way++) {
		struct ab stored;

		frame(&stored, way);
		for (size_t i = 0; i < 2; i++)
			assert_int_equal(decode(&stored, all[i], SIZE, SIZE - 1, false),
					 KPACK_ERROR_DECOMPRESSION_FAILED);
		assert_has(why.text, "more than its 3145850 bytes");
		/* fewer bytes are the caller's to notice */
		stored.size /= 2;
		expect(&stored, SIZE, true, KPACK_ERROR_DECOMPRESSION_FAILED,
		       "frame ends after");
		ab_free(&stored);
	}
}

/* What is decoded in one call holds the stored bytes, other frames their window. */
TEST(memory_is_foretold)
{
	const uint64_t window = (1 << 18) + (256 << 10);
	struct ab large = {0}, small = {0};
	struct kp_span head;

	put_frame(&large, 0, SIZE, 18, true);
	head = (struct kp_span){large.bytes, 18};
	assert_int_equal(kp_frames_memory(head, KP_FRAMES_WHOLE, large.size, SIZE),
			 large.size);
	assert_int_equal(kp_frames_memory(head, KP_FRAMES_STEPS, large.size, SIZE),
			 window);
	assert_int_equal(kp_frames_memory(head, KP_FRAMES_PIECES, large.size, SIZE),
			 window);
	put_frame(&small, 0, 100000, 18, true);
	head = (struct kp_span){small.bytes, 18};
	assert_int_equal(kp_frames_memory(head, KP_FRAMES_STEPS, small.size, 100000),
			 small.size);
	/* many frames: each is held alone */
	assert_true(kp_frames_memory(head, KP_FRAMES_WHOLE, 1 << 30, 1 << 30) < 1 << 20);
	ab_free(&large);
	ab_free(&small);
}

static int begin_suite(void **state)
{
	data = ab_data(SIZE, 5);
	out = malloc(SIZE);
	return 0;
}

static int end_suite(void **state)
{
	free(data);
	free(out);
	return 0;
}

SUITE(begin_suite, end_suite);
