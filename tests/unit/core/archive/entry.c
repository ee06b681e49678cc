/* SPDX-License-Identifier: MIT */
/* Every way to decode, of every way in which an entry's bytes may be stored. */
#include "core/archive/entry.h"
#include "core/archive/chunks.h"
#include "tests/unit/hooks.h"
#include "tests/unit/archive_builder.h"
#include "core/base/bounds.h"
#include "core/writer/encode.h"
#include <fcntl.h>
#include "tests/unit/unit.h"

enum { SIZE = (2 << 20) + 123, CHUNK = 100000 };

static struct kpackx_error why;
static uint8_t *data;

/* How bytes are stored. */
enum kind {
	PLAIN,
	FRAME,   /* with a window of 2^LOG bytes */
	UNKNOWN, /* as FRAME, but it does not state its size */
	TWO,  /* a skippable frame, an empty one, and two that have a part of the bytes */
	WIDE, /* a frame of raw blocks with a window of 1 GiB */
	CHUNKS, /* frames with a seek table */
	SUMS,   /* as CHUNKS, with checksums in the table */
	OURS,   /* what kp_encode makes: chunks of one frame */
};

static struct ab ours(size_t size, size_t chunk)
{
	struct ab a = {.bytes = malloc(kp_encode_bound(size, chunk))};
	struct kp_encoder *e;

	assert_int_equal(kp_encoder_new(3, &e, &why), KPACK_SUCCESS);
	assert_int_equal(kp_encode(e, (struct kp_span){data, size}, chunk, a.bytes,
				   kp_encode_bound(size, chunk), &a.size, &why),
			 KPACK_SUCCESS);
	kp_encoder_free(e);
	return a;
}

static struct ab stored_as(enum kind kind, size_t size, int log)
{
	struct ab a = {0};

	if (kind == PLAIN)
		ab_put(&a, data, size);
	else if (kind == FRAME || kind == UNKNOWN)
		ab_put_window(&a, data, size, log, kind == UNKNOWN);
	else if (kind == WIDE)
		ab_put_wide(&a, data, size, 30);
	else if (kind == CHUNKS || kind == SUMS)
		a = ab_seekable(data, size, CHUNK, kind == SUMS);
	else if (kind == OURS)
		a = ours(size, CHUNK);
	if (kind == TWO) {
		ab_put(&a, "\x50\x2a\x4d\x18\3\0\0\0abc", 11);
		ab_put_frame(&a, "", 0);
		ab_put_window(&a, data, size / 3, 17, false);
		ab_put_window(&a, data + size / 3, size - size / 3, 12, true);
	}
	return a;
}

/* An archive of the entry 0 with these bytes, which are freed, with the xxh3 HASH; NULL: none. */
static struct kpack_archive *archive_of(enum kind kind, struct ab *stored, size_t size,
					const char *hash)
{
	char metadata[128];

	snprintf(metadata, sizeof(metadata), "{%s%s%s 'chunk': %d}",
		 hash ? "'xxh3': x'" : "", hash ? hash : "", hash ? "'," : "",
		 kind >= CHUNKS ? CHUNK : -1);
	return ab_entry(kind == PLAIN, stored, size, metadata);
}

static struct kpack_archive *made(enum kind kind, size_t size, int log, bool hashed)
{
	struct ab stored = stored_as(kind, size, log);
	char *hash = hashed ? ab_xxh3(data, size) : NULL;
	struct kpack_archive *a = archive_of(kind, &stored, size, hash);

	free(hash);
	ab_free(&stored);
	return a;
}

/*
 * Decode all with D in steps of STEP bytes, into one buffer or, WINDOWED, into one that is
 * used again.  What is ready is right, also before an error.
 */
static kpack_error_t steps(struct kp_reader *d, size_t size, uint64_t step, bool windowed)
{
	size_t cap = windowed && step < size ? (size_t)step : size;
	uint8_t *buf = malloc(cap + 1);
	uint64_t done = 0, before;
	kpack_error_t err;

	do {
		before = done;
		err = kp_reader_next(d, buf, step, &done, &why);
		assert_true(done >= before && done <= size);
		assert_memory_equal(buf + (windowed ? 0 : before), data + before,
				    done - before);
	} while (!err && done < size);
	free(buf);
	return err;
}

static const enum kp_read_how ways[] = {KP_READ_WHOLE, KP_READ_STEPS, KP_READ_VERIFY,
					KP_READ_PIECES};

/* Decode A in one way with a new decoder, or with D, which was left. */
static kpack_error_t decode(const struct kpack_archive *a, size_t size,
			    enum kp_read_how how, uint64_t step, struct kp_reader *d)
{
	struct kp_reader *own = NULL;
	kpack_error_t err = d ? kp_reader_reopen(d, a, 0, how, &why)
			      : kp_reader_open(a, 0, how, &own, &why);

	if (how == KP_READ_VERIFY && !err)
		step = kp_reader_unit(d ? d : own);
	else if (how == KP_READ_WHOLE)
		step = UINT64_MAX;
	if (!err)
		err = steps(d ? d : own, size, step, how >= KP_READ_PIECES);
	if (d)
		kp_reader_leave(d);
	kp_reader_close(own);
	return err;
}

static void assert_ranges(const struct kpack_archive *a, size_t size)
{
	const struct {
		uint64_t at;
		size_t size;
	} ranges[] = {
		{0, 0},
		{0, 7},
		{1, 7},
		{size / 2, 7},
		{CHUNK - 3, 7},
		{size - !!size, 7},
		{size, 0},
		{size, 7},
		{size + 1, 1},
		{0, size},
		{0, SIZE_MAX},
		{1, size},
		{4095, 4098},
		{65536, 65537},
		{131072, 200000},
		{UINT64_MAX, SIZE_MAX},
		{UINT64_MAX - 4, 10},
	};

	for (size_t i = 0; i < COUNT(ranges); i++) {
		size_t left = ranges[i].at < size ? size - (size_t)ranges[i].at : 0;
		size_t want = left < ranges[i].size ? left : ranges[i].size, got = 9;
		uint8_t *buf =
			malloc(want + 1); /* exactly the bytes that may be written */

		buf[want] = 0xee;
		assert_int_equal(kp_entry_read_range(a, 0, ranges[i].at, buf,
						     ranges[i].size, &got, &why),
				 KPACK_SUCCESS);
		assert_int_equal(got, want);
		assert_memory_equal(buf, data + (want ? ranges[i].at : 0), want);
		assert_int_equal(buf[want], 0xee);
		free(buf);
	}
}

static void assert_chunks(const struct kpack_archive *a, size_t size)
{
	uint64_t n = size ? (size + CHUNK - 1) / CHUNK : 1;
	static uint8_t buf[CHUNK];
	struct kp_reader *r;

	assert_int_equal(kp_reader_open(a, 0, KP_READ_PARTS, &r, &why), KPACK_SUCCESS);
	assert_true(kp_reader_unit(r) == CHUNK);
	for (uint64_t k = n; k--;) {
		size_t left = k + 1 < n ? CHUNK : size - k * CHUNK;

		assert_int_equal(kp_reader_at(r, k * CHUNK, buf, left, &why),
				 KPACK_SUCCESS);
		assert_memory_equal(buf, data + k * CHUNK, left);
	}
	kp_reader_close(r);
}

TEST(every_way_gives_the_same_bytes)
{
	static const struct {
		enum kind kind;
		size_t size;
		int log;
		uint64_t unit;   /* of the entry; 0: all of it */
		uint64_t window; /* as kp_entry_window says */
	} forms[] = {
		{PLAIN, 0, 0, 0, 0},
		{PLAIN, SIZE, 0, 256 << 10, 0},
		{FRAME, 0, 17, 0, 0},
		{FRAME, 1, 17, 0, 1},
		{FRAME, 4097, 17, 0, 4097},
		{FRAME, SIZE, 18, 256 << 10, 1 << 18},
		{FRAME, SIZE, 20, 256 << 10, 1 << 20},
		{FRAME, SIZE, 21, 0, 1 << 21},
		/* a single segment: the window is the content */
		{FRAME, SIZE, 24, 0, SIZE},
		{UNKNOWN, SIZE, 18, 0, 1 << 18},
		{TWO, 300000, 0, 0, 0},
		{WIDE, 200000, 0, 0, 1 << 30},
		{CHUNKS, 0, 0, CHUNK, 0},
		{CHUNKS, CHUNK, 0, CHUNK, 0},
		{SUMS, CHUNK + 1, 0, CHUNK, 0},
		{SUMS, SIZE, 0, CHUNK, 0},
		{OURS, 5000, 0, CHUNK, 0},
		{OURS, SIZE, 0, CHUNK, 0},
	};
	static const uint64_t sizes[] = {70000, UINT64_MAX};
	struct kp_reader *again = NULL;

	for (size_t i = 0; i < 2 * COUNT(forms); i++) {
		size_t size = forms[i / 2].size;
		struct kpack_archive *a =
			made(forms[i / 2].kind, size, forms[i / 2].log, i % 2);
		uint8_t *buf = malloc(size + 1);
		struct kp_reader *d;
		uint64_t window = 99;

		if (!again) {
			assert_int_equal(
				kp_reader_open(a, 0, KP_READ_STEPS, &again, &why), 0);
			kp_reader_leave(again);
		}
		assert_int_equal(kp_entry_read(a, 0, buf, &why), KPACK_SUCCESS);
		assert_memory_equal(buf, data, size);
		for (size_t k = 0; k < COUNT(ways) * COUNT(sizes); k++) {
			enum kp_read_how how = ways[k % COUNT(ways)];
			if (decode(a, size, how, sizes[k / COUNT(ways)],
				   k / 3 % 2 ? again : NULL))
				fail_msg("form %zu, %zu: %s", i, k, why.text);
		}
		assert_ranges(a, size);
		assert_int_equal(kp_reader_open(a, 0, KP_READ_VERIFY, &d, &why), 0);
		assert_int_equal(kp_reader_unit(d),
				 forms[i / 2].unit ? forms[i / 2].unit : size);
		kp_reader_close(d);
		if (forms[i / 2].kind <= UNKNOWN || forms[i / 2].kind == WIDE) {
			assert_int_equal(kp_entry_window(a, 0, &window, &why), 0);
			if (window != forms[i / 2].window)
				fail_msg("form %zu: window %llu", i,
					 (unsigned long long)window);
		}
		if (forms[i / 2].kind >= CHUNKS)
			assert_chunks(a, size);
		kp_archive_close(a);
		free(buf);
	}
	kp_reader_close(again);
}

/*
 * LETTERS: one for each of WHOLE, STEPS, VERIFY and PIECES, x where decoding A fails.  A decoder that failed is used for another entry.
 */
static void fails(const struct kpack_archive *a, size_t size, const char *letters,
		  const char *text)
{
	struct kpack_archive *good = made(FRAME, 5000, 18, true);
	struct kp_reader *d;

	assert_int_equal(kp_reader_open(good, 0, KP_READ_STEPS, &d, &why), 0);
	kp_reader_leave(d);
	for (size_t i = 0; i < COUNT(ways); i++) {
		kpack_error_t err = decode(a, size, ways[i], 65536, d);

		assert_int_equal(err != KPACK_SUCCESS, letters[i] == 'x');
		if (!err)
			continue;
		assert_true(err == KPACK_ERROR_DECOMPRESSION_FAILED ||
			    err == KPACK_ERROR_INVALID_FORMAT);
		assert_has(why.text, text);
		assert_int_equal(decode(good, 5000, ways[i], 999, d), KPACK_SUCCESS);
	}
	kp_reader_close(d);
	kp_archive_close(good);
}

TEST(what_is_wrong_is_found)
{
	static const struct {
		enum kind kind;
		int log;
		bool hashed;
		int more;    /* bytes that the entry's size is too large */
		size_t off;  /* bytes that are cut off */
		size_t flip; /* this byte, from the end */
		const char *ways, *text;
	} faults[] = {
		{FRAME, 18, true, 1, 0, 0, "xxxx", "2097276"},
		{UNKNOWN, 18, true, -1, 0, 0, "xxxx", ""},
		{FRAME, 18, false, -1, 0, 0, "xxxx", ""},
		{FRAME, 18, true, 0, 2, 0, "xxxx", "frame ends"},
		{FRAME, 24, false, 0, 1, 0, "xxxx", "frame ends"},
		{FRAME, 18, true, 0, 0, 1, "..x.", "checksum"}, /* the xxh3 has all */
		{FRAME, 18, false, 0, 0, 1, "xxxx", "checksum"},
		{FRAME, 24, true, 0, 0, 1, "..x.", "checksum"},
		{TWO, 0, true, 0, 5, 0, "xxxx", ""},
		{TWO, 0, false, 1, 0, 0, "xxxx", "2097276"},
		{SUMS, 0, false, 0, 0, 9 + 2, "xxx.", "checksum"},
		{SUMS, 0, true, 0, 0, 9 + 2, "..x.", "checksum"},
		{OURS, 0, false, 0, 0, 17 + 21 * 12 + 1, "xxxx", "checksum"},
		{CHUNKS, 0, true, 0, 0, 1, "..x.", ""}, /* no table */
		{CHUNKS, 0, true, 1, 0, 0, "xxxx", ""},
	};

	for (size_t i = 0; i < COUNT(faults); i++) {
		struct ab stored = stored_as(faults[i].kind, SIZE, faults[i].log);
		char *hash = ab_xxh3(data, SIZE);
		struct kpack_archive *a;
		size_t size = (size_t)(SIZE + faults[i].more);

		if (faults[i].flip)
			stored.bytes[stored.size - faults[i].flip] ^= 1;
		stored.size -= faults[i].off;
		a = archive_of(faults[i].kind, &stored, size,
			       faults[i].hashed ? hash : NULL);
		fails(a, size, faults[i].ways, faults[i].text);
		kp_archive_close(a);
		free(hash);
	}
	for (enum kind kind = PLAIN; kind <= OURS; kind++) {
		struct ab stored = stored_as(kind, 300000, 18);
		struct kpack_archive *a = archive_of(kind, &stored, 300000,
						     "00112233445566778899aabbccddeeff");

		fails(a, 300000, "xxxx", kind == WIDE ? "" : "xxh3");
		kp_archive_close(a);
	}
}

/* Damage of one chunk is that of no other one; a range that it has is not read. */
TEST(a_damaged_chunk_fails_alone)
{
	struct ab a = ours(300000, CHUNK);
	static uint8_t buf[CHUNK];
	struct kpack_archive *archive;
	struct kp_reader *r;
	size_t bad = 0, got;

	a.bytes[a.size / 2] ^= 0x10;
	archive = archive_of(OURS, &a, 300000, NULL);
	assert_int_equal(kp_reader_open(archive, 0, KP_READ_PARTS, &r, &why),
			 KPACK_SUCCESS);
	for (uint64_t k = 0; k < 3; k++)
		if (kp_reader_at(r, k * CHUNK, buf, CHUNK, &why))
			bad++;
		else
			assert_memory_equal(buf, data + k * CHUNK, CHUNK);
	assert_int_equal(bad, 1);
	assert_int_equal(kp_entry_read_range(archive, 0, 150000, buf, 9, &got, &why),
			 KPACK_ERROR_DECOMPRESSION_FAILED);
	kp_reader_close(r);
	kp_archive_close(archive);
}

static kpack_error_t read_table(const struct ab *a)
{
	struct kp_source s = kp_source_memory(a->bytes, a->size);
	struct kp_chunks c;
	kpack_error_t err = kp_chunks_open(&c, &s, 4096, 10000, &why);

	kp_chunks_fini(&c);
	return err;
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
	struct ab a = ab_seekable(data, 10000, 4096, false);

	assert_int_equal(read_table(&a), KPACK_SUCCESS);
	for (size_t i = 0; i < COUNT(lies); i++) {
		uint32_t was = kp_le32(a.bytes + a.size - lies[i].at);

		kp_put_le32(a.bytes + a.size - lies[i].at, lies[i].value);
		if (read_table(&a) != KPACK_ERROR_INVALID_FORMAT)
			fail_msg("row %zu", i);
		kp_put_le32(a.bytes + a.size - lies[i].at, was);
	}
	/* reserved bits, and the checksum flag without checksums */
	for (unsigned bit = 2; bit < 8; bit++) {
		a.bytes[a.size - 5] = (uint8_t)(1u << bit);
		assert_int_equal(read_table(&a), KPACK_ERROR_INVALID_FORMAT);
	}
	ab_free(&a);
}

TEST(windows_have_limits)
{
	struct kpack_archive *a = made(FRAME, SIZE, 20, true);
	uint8_t buf[1000];
	uint64_t done;

	for (int less = 0; less < 2; less++) {
		struct kp_reader *d;

		assert_int_equal(kp_reader_open(a, 0, KP_READ_PIECES, &d, &why), 0);
		kp_reader_limit_window(d, (1 << 20) - less);
		assert_int_equal(kp_reader_next(d, buf, sizeof(buf), &done, &why),
				 less ? KPACK_ERROR_DECOMPRESSION_FAILED : 0);
		assert_int_equal(kp_reader_too_wide(d), less);
		kp_reader_close(d);
	}
	kp_archive_close(a);
	/* a check that may take little memory holds neither a wide window nor the entry */
	for (int log = 22; log <= 28; log += 6) {
		struct ab stored = {0};
		char *hash = ab_xxh3(data, SIZE);

		ab_put_window(&stored, data, 1000, 18, false);
		ab_put_window(&stored, data + 1000, SIZE - 1000, log, true);
		a = archive_of(FRAME, &stored, SIZE, hash);
		assert_int_equal(kp_entry_check_parts(a, 0, 1 << 20, &why),
				 KPACK_ERROR_DECOMPRESSION_FAILED);
		assert_has(why.text, "memory");
		kp_archive_close(a);
		free(hash);
	}
}

/* What was checked is checked again when the file may have other bytes. */
TEST(a_check_is_remembered_until_the_file_changes)
{
	struct kpack_archive *a = made(FRAME, SIZE, 18, true);

	assert_false(kp_entry_has_parts(a, 0));
	assert_int_equal(kp_entry_check_parts(a, 0, UINT64_MAX, &why), KPACK_SUCCESS);
	assert_true(kp_entry_has_parts(a, 0));
	assert_true(kp_archive_same_toc(a));
	assert_false(kp_entry_has_parts(a, 0));
	kp_archive_close(a);
}

static uint64_t asked_from, asked_end; /* offsets in the archive; 0: nothing yet */

static int note_fadvise(int fd, off_t at, off_t len, int advice)
{
	uint64_t from = (uint64_t)at, end = from + (uint64_t)len;

	assert_int_equal(advice, POSIX_FADV_WILLNEED);
	if (!asked_end)
		asked_from = asked_end = from;
	assert_in_range(from, asked_from, asked_end); /* what was asked for is one run */
	asked_end = end > asked_end ? end : asked_end;
	return 0;
}

TEST(stored_bytes_are_read_ahead)
{
	static const struct {
		enum kind kind;
		enum kp_read_how how;
	} asks[] = {
		{FRAME, KP_READ_PIECES}, {FRAME, KP_READ_VERIFY}, {FRAME, KP_READ_STEPS},
		{PLAIN, KP_READ_PIECES}, {FRAME, KP_READ_WHOLE},
	};

	hook_fadvise = note_fadvise;
	for (size_t i = 0; i < COUNT(asks); i++) {
		struct kpack_archive *a = made(asks[i].kind, SIZE, 18, true);
		uint64_t from = asks[i].kind == PLAIN ? 64 : 72;
		struct kp_entry_info info;

		kp_archive_entry(a, 0, &info);
		asked_from = asked_end = 0;
		assert_int_equal(decode(a, SIZE, asks[i].how, 256 << 10, NULL), 0);
		if (asks[i].how == KP_READ_WHOLE)
			from = info.stored = 0; /* read in one step */
		assert_int_equal(asked_from, from);
		assert_int_equal(asked_end, from + info.stored);
		kp_archive_close(a);
	}
	hook_fadvise = NULL;
}

static int begin_suite(void **state)
{
	data = ab_data(SIZE, 5);
	return 0;
}

static int end_suite(void **state)
{
	free(data);
	return 0;
}

SUITE(begin_suite, end_suite);
