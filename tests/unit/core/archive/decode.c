/* SPDX-License-Identifier: MIT */
#include "core/archive/decode.h"
#include "tests/unit/hooks.h"
#include "tests/unit/archive_builder.h"
#include <fcntl.h>
#include "tests/unit/unit.h"

#define SIZE ((3 << 20) + 123)

static struct kpackx_error why;
static uint8_t *data;

/*
 * Append a frame of DATA with a window of 2^LOG bytes; UNKNOWN: its header does not state
 * the size.
 */
static void put_frame(struct ab *stored, size_t size, int log, bool unknown)
{
	size_t cap = ZSTD_compressBound(size), n;
	ZSTD_CCtx *z = ZSTD_createCCtx();
	uint8_t *frame = malloc(cap);

	ZSTD_CCtx_setParameter(z, ZSTD_c_windowLog, log);
	ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
	ZSTD_CCtx_setParameter(z, ZSTD_c_contentSizeFlag, !unknown);
	n = ZSTD_compress2(z, frame, cap, data, size);
	assert_false(ZSTD_isError(n));
	ab_put(stored, frame, n);
	ZSTD_freeCCtx(z);
	free(frame);
}

/* An archive of one entry of SIZE bytes whose frames are STORED, which is freed. */
static struct kpack_archive *opened(struct ab *stored, size_t size, const char *hash)
{
	struct kpack_archive *archive = NULL;
	struct ab a = ab_new_zstd();

	ab_stored(&a, stored->bytes, stored->size);
	ab_toc(&a,
	       "{'compression_scheme': 'zstd-per-kernel', 'zstd_offset': 64, "
	       "'zstd_size': %zu, 'toc': {'a': {'x': {'ordinal': 0, 'original_size': "
	       "%zu, 'metadata': {'xxh3': x'%s'}}}}}",
	       a.size - 64, size, hash);
	assert_int_equal(ab_open(&a, &archive, &why), KPACK_SUCCESS);
	ab_free(&a);
	ab_free(stored);
	return archive;
}

static struct kpack_archive *framed(int log)
{
	char *hash = ab_xxh3(data, SIZE);
	struct ab stored = {0};
	struct kpack_archive *a;

	put_frame(&stored, SIZE, log, false);
	a = opened(&stored, SIZE, hash);
	free(hash);
	return a;
}

/* Decode all of A in steps of STEP bytes; returns the first error. */
static kpack_error_t run(const struct kpack_archive *a, size_t size, size_t step)
{
	uint8_t *buf = malloc(step);
	struct kp_decode *p = NULL;
	kpack_error_t err = kp_decode_open(a, 0, KP_DECODE_PIECES, &p, &why);
	uint64_t done;

	for (size_t at = 0; at < size && !err; at += step) {
		size_t n = size - at < step ? size - at : step;

		err = kp_decode_next(p, buf, n, &done, &why);
		if (!err)
			assert_memory_equal(buf, data + at, n);
	}
	kp_decode_close(p);
	free(buf);
	return err;
}

TEST(all_comes_in_order)
{
	static const size_t steps[] = {1 << 20, 100000, 512 << 10, SIZE, 4097};
	struct kpack_archive *a = framed(18);

	for (size_t i = 0; i < COUNT(steps); i++)
		assert_int_equal(run(a, SIZE, steps[i]), KPACK_SUCCESS);
	kp_archive_close(a);
}

static struct kpack_archive *plain(void)
{
	struct kpack_archive *archive = NULL;
	struct ab a = ab_new(64);

	ab_put(&a, data, SIZE);
	ab_toc(&a,
	       "{'compression_scheme': 'none', 'blobs': [{'offset': 64, 'size': %d}], "
	       "'toc': {'a': {'x': {'ordinal': 0, 'original_size': %d}}}}",
	       SIZE, SIZE);
	assert_int_equal(ab_open(&a, &archive, &why), KPACK_SUCCESS);
	ab_free(&a);
	return archive;
}

static uint64_t asked_from, asked_end; /* offsets in the archive; 0: nothing yet */
static bool asked_apart;               /* what was asked for is not one run */

static int note_fadvise(int fd, off_t at, off_t len, int advice)
{
	uint64_t from = (uint64_t)at, end = from + (uint64_t)len;

	assert_int_equal(advice, POSIX_FADV_WILLNEED);
	if (!asked_end)
		asked_from = asked_end = from;
	asked_apart |= from < asked_from || from > asked_end;
	asked_end = end > asked_end ? end : asked_end;
	return 0;
}

static void forget_what_was_asked(void)
{
	asked_from = asked_end = 0;
	asked_apart = false;
}

/* The bytes of A's entry, from FROM on, are asked for from the first to the last. */
static void asks_for(struct kpack_archive *a, uint64_t from, enum kp_decode_how how)
{
	struct kp_decode *d;
	struct kp_entry_info info;
	uint8_t *buf = malloc(SIZE);
	uint64_t done = 0, window;

	kp_archive_entry(a, 0, &info);
	assert_true(info.stored > 2 << 20);
	forget_what_was_asked();
	assert_int_equal(kp_decode_window(a, 0, &window, &why), KPACK_SUCCESS);
	assert_int_equal(asked_end, kp_archive_is_plain(a) ? 0 : from + (1 << 20));
	forget_what_was_asked();
	assert_int_equal(kp_decode_open(a, 0, how, &d, &why), KPACK_SUCCESS);
	if (how != KP_DECODE_UNITS) {
		assert_int_equal(asked_from, from);
		assert_int_equal(asked_end, from + (1 << 20));
	}
	while (done < SIZE)
		assert_int_equal(kp_decode_next(d, buf, 256 << 10, &done, &why),
				 KPACK_SUCCESS);
	assert_int_equal(asked_from, from);
	assert_int_equal(asked_end, from + info.stored);
	assert_false(asked_apart);
	kp_decode_close(d);
	free(buf);
	kp_archive_close(a);
}

TEST(stored_bytes_are_read_ahead)
{
	asks_for(framed(18), 72, KP_DECODE_PIECES);
	asks_for(framed(18), 72, KP_DECODE_UNITS);
	asks_for(framed(18), 72, KP_DECODE_STEPS);
	asks_for(plain(), 64, KP_DECODE_PIECES);
}

TEST(a_frame_that_is_read_in_one_step_is_not)
{
	struct kpack_archive *a = framed(18);
	uint8_t *buf = malloc(SIZE);

	forget_what_was_asked();
	assert_int_equal(kp_archive_read_fast(a, 0, buf, &why), KPACK_SUCCESS);
	assert_int_equal(kp_archive_read(a, 0, buf, &why), KPACK_SUCCESS);
	assert_int_equal(asked_end, 0);
	free(buf);
	kp_archive_close(a);
}

TEST(plain_bytes)
{
	struct kpack_archive *archive = plain();
	uint64_t window = 1;

	assert_int_equal(kp_decode_window(archive, 0, &window, &why), KPACK_SUCCESS);
	assert_int_equal(window, 0);
	assert_int_equal(run(archive, SIZE, 100001), KPACK_SUCCESS);
	kp_archive_close(archive);
}

TEST(several_frames)
{
	char *hash;
	struct ab stored = {0};
	struct kpack_archive *a;
	uint8_t *twice = malloc(400000), *kept = data;

	put_frame(&stored, 200000, 17, false);
	put_frame(&stored, 200000, 12, true);
	memcpy(twice, data, 200000);
	memcpy(twice + 200000, data, 200000);
	hash = ab_xxh3(twice, 400000);
	a = opened(&stored, 400000, hash);
	data = twice;
	assert_int_equal(run(a, 400000, 70000), KPACK_SUCCESS);
	data = kept;
	kp_archive_close(a);
	free(hash);
	free(twice);
}

/* Decode all of A with D, which was left, HOW. */
static kpack_error_t again(struct kp_decode *d, const struct kpack_archive *a,
			   enum kp_decode_how how)
{
	uint8_t *buf = malloc(SIZE);
	uint64_t done = 0;
	kpack_error_t err = kp_decode_reopen(d, a, 0, how, &why);

	if (!err)
		err = kp_decode_next(d, buf, UINT64_MAX, &done, &why);
	if (!err)
		assert_memory_equal(buf, data, SIZE);
	kp_decode_leave(d);
	free(buf);
	return err;
}

/* A decoder that is used again forgets where it was, what failed, and its limit. */
TEST(one_decoder_for_many)
{
	static const enum kp_decode_how ways[] = {KP_DECODE_WINDOW, KP_DECODE_STEPS,
						  KP_DECODE_FAST,   KP_DECODE_WHOLE,
						  KP_DECODE_PIECES, KP_DECODE_WINDOW};
	struct kpack_archive *a = framed(18), *other = framed(21), *bad;
	struct ab cut = {0};
	struct kp_decode *d;
	uint8_t *buf = malloc(1000);
	uint64_t done;

	put_frame(&cut, SIZE, 18, false);
	cut.size /= 2;
	bad = opened(&cut, SIZE, "00000000000000000000000000000000");
	assert_int_equal(kp_decode_open(a, 0, KP_DECODE_WINDOW, &d, &why), KPACK_SUCCESS);
	assert_int_equal(kp_decode_limit_window(d, 1 << 18, &why), KPACK_SUCCESS);
	assert_int_equal(kp_decode_next(d, buf, 1000, &done, &why), KPACK_SUCCESS);
	assert_true(kp_decode_leave(d) >= 1 << 18);
	for (size_t i = 0; i < COUNT(ways); i++) {
		assert_int_equal(again(d, a, ways[i]), KPACK_SUCCESS);
		assert_int_equal(again(d, bad, ways[i]),
				 KPACK_ERROR_DECOMPRESSION_FAILED);
		assert_int_equal(again(d, other, ways[i]), KPACK_SUCCESS);
	}
	kp_decode_close(d);
	kp_archive_close(bad);
	kp_archive_close(other);
	kp_archive_close(a);
	free(buf);
}

/* The xxh3 makes a frame's own checksum superfluous. */
TEST(checksums_of_frames)
{
	char *hash = ab_xxh3(data, SIZE);
	struct kpack_archive *a;
	struct ab stored = {0};
	struct kp_decode *d;
	uint8_t byte;
	uint64_t done;

	put_frame(&stored, SIZE, 18, false);
	stored.bytes[stored.size - 1] ^= 1;
	a = opened(&stored, SIZE, hash);
	assert_int_equal(run(a, SIZE, 100000), KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_int_equal(kp_decode_open(a, 0, KP_DECODE_WINDOW, &d, &why), KPACK_SUCCESS);
	assert_int_equal(kp_decode_next(d, &byte, 1, &done, &why), KPACK_SUCCESS);
	kp_decode_leave(d);
	assert_int_equal(again(d, a, KP_DECODE_WINDOW), KPACK_SUCCESS);
	kp_decode_close(d);
	kp_archive_close(a);
	free(hash);
}

static struct kp_decode *limited(const struct kpack_archive *a, uint64_t window_max)
{
	struct kp_decode *p;

	assert_int_equal(kp_decode_open(a, 0, KP_DECODE_PIECES, &p, &why), KPACK_SUCCESS);
	assert_int_equal(kp_decode_limit_window(p, window_max, &why), KPACK_SUCCESS);
	return p;
}

TEST(windows)
{
	struct kpack_archive *a = framed(20), *single = framed(24);
	struct kp_decode *p;
	uint64_t window, done;
	uint8_t *buf = malloc(SIZE);

	assert_int_equal(kp_decode_window(a, 0, &window, &why), KPACK_SUCCESS);
	assert_int_equal(window, 1 << 20);
	/* A single-segment frame: its window is its content. */
	assert_int_equal(kp_decode_window(single, 0, &window, &why), KPACK_SUCCESS);
	assert_int_equal(window, SIZE);

	p = limited(a, 1 << 20);
	assert_int_equal(kp_decode_next(p, buf, 1000, &done, &why), KPACK_SUCCESS);
	assert_false(kp_decode_too_wide(p));
	kp_decode_close(p);
	p = limited(a, (1 << 20) - 1);
	assert_int_equal(kp_decode_next(p, buf, 1000, &done, &why),
			 KPACK_ERROR_DECOMPRESSION_FAILED);
	assert_true(kp_decode_too_wide(p));
	kp_decode_close(p);
	/* Opening accepts any limit. */
	p = limited(a, 0);
	kp_decode_close(p);
	p = limited(a, UINT64_MAX);
	kp_decode_close(p);
	free(buf);
	kp_archive_close(a);
	kp_archive_close(single);
}

/* Decode A, which is closed, in units of UNIT bytes; returns the first error. */
static kpack_error_t run_units(struct kpack_archive *a, uint64_t unit)
{
	struct kp_decode *d;
	uint8_t *buf = malloc(unit);
	uint64_t done = 0, before;
	kpack_error_t err = kp_decode_open(a, 0, KP_DECODE_UNITS, &d, &why);

	assert_int_equal(err, KPACK_SUCCESS);
	assert_int_equal(kp_decode_unit(d), unit);
	while (done < SIZE && !err) {
		before = done;
		err = kp_decode_next(d, buf, unit, &done, &why);
		if (!err)
			assert_memory_equal(buf, data + before, done - before);
	}
	kp_decode_close(d);
	kp_archive_close(a);
	free(buf);
	return err;
}

/* A large buffer is needed only for frames that refer far back. */
/* A check that may take little memory holds no wide window, and not all of the entry. */
TEST(a_check_takes_no_more_than_it_may)
{
	for (int log = 22; log <= 28; log += 6) {
		struct kpack_archive *a;
		struct ab stored = {0};
		char *hash;

		put_frame(&stored, 1000, 18, false);
		put_frame(&stored, SIZE - 1000, log, true);
		hash = ab_xxh3(data, SIZE);
		a = opened(&stored, SIZE, hash);
		free(hash);
		assert_int_equal(kp_archive_check_parts(a, 0, 1 << 20, &why),
				 KPACK_ERROR_DECOMPRESSION_FAILED);
		assert_has(why.text, "memory");
		kp_archive_close(a);
	}
}

/* What was checked is checked again when the file may have other bytes. */
TEST(a_check_is_remembered_until_the_file_changes)
{
	struct kpack_archive *a = framed(18);

	assert_false(kp_archive_has_parts(a, 0));
	assert_int_equal(kp_archive_check_parts(a, 0, UINT64_MAX, &why), KPACK_SUCCESS);
	assert_true(kp_archive_has_parts(a, 0));
	assert_true(kp_archive_same_toc(a));
	assert_false(kp_archive_has_parts(a, 0));
	kp_archive_close(a);
}

TEST(units)
{
	static const uint64_t piece = 256 << 10;
	char *hash = ab_xxh3(data, SIZE);
	struct ab stored = {0};

	assert_int_equal(run_units(plain(), piece), KPACK_SUCCESS);
	assert_int_equal(run_units(framed(18), piece), KPACK_SUCCESS);
	assert_int_equal(run_units(framed(20), piece), KPACK_SUCCESS);
	assert_int_equal(run_units(framed(21), SIZE), KPACK_SUCCESS);
	assert_int_equal(run_units(framed(24), SIZE), KPACK_SUCCESS);
	put_frame(&stored, SIZE, 18, true);
	assert_int_equal(run_units(opened(&stored, SIZE, hash), SIZE), KPACK_SUCCESS);

	/* all is checked: the frame's checksum, its end, what follows it, and the xxh3 */
	put_frame(&stored, SIZE, 18, false);
	stored.bytes[stored.size - 1] ^= 1;
	assert_int_equal(run_units(opened(&stored, SIZE, hash), piece),
			 KPACK_ERROR_DECOMPRESSION_FAILED);
	put_frame(&stored, SIZE, 18, false);
	stored.size -= 2;
	assert_int_equal(run_units(opened(&stored, SIZE, hash), piece),
			 KPACK_ERROR_DECOMPRESSION_FAILED);
	put_frame(&stored, SIZE, 18, false);
	put_frame(&stored, 1, 18, false);
	assert_int_equal(run_units(opened(&stored, SIZE, hash), piece),
			 KPACK_ERROR_DECOMPRESSION_FAILED);
	put_frame(&stored, SIZE, 18, false);
	hash[0] = hash[0] == '0' ? '1' : '0';
	assert_int_equal(run_units(opened(&stored, SIZE, hash), piece),
			 KPACK_ERROR_DECOMPRESSION_FAILED);
	free(hash);
}

/*
 * An entry of SIZE bytes with the frames STORED fails with an error that contains TEXT.
 */
static void expect_fault(struct ab *stored, size_t size, const char *hash,
			 const char *text)
{
	struct kpack_archive *a = opened(stored, size, hash);

	assert_int_equal(run(a, size, 100000), KPACK_ERROR_DECOMPRESSION_FAILED);
	if (!strstr(why.text, text))
		fail_msg("%s", why.text);
	kp_archive_close(a);
}

TEST(faults)
{
	struct ab stored = {0};
	char *hash = ab_xxh3(data, 500000);

	put_frame(&stored, 500000, 17, true);
	expect_fault(&stored, 500000, "00112233445566778899aabbccddeeff", "xxh3");
	put_frame(&stored, 500001, 17, true);
	expect_fault(&stored, 500000, hash, "more than its 500000");
	put_frame(&stored, 499999, 17, true);
	expect_fault(&stored, 500000, hash, "less than its 500000");
	put_frame(&stored, 500000, 17, true);
	stored.size -= 2; /* half of the checksum */
	expect_fault(&stored, 500000, hash, "frame ends");
	put_frame(&stored, 500000, 17, true);
	stored.bytes[stored.size - 1] ^= 1;
	expect_fault(&stored, 500000, hash, "checksum");
	free(hash);
}

static int begin_suite(void **state)
{
	data = ab_data(SIZE, 5);
	hook_fadvise = note_fadvise;
	return 0;
}

static int end_suite(void **state)
{
	free(data);
	return 0;
}

SUITE(begin_suite, end_suite);
