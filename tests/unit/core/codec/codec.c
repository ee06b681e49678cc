/* SPDX-License-Identifier: MIT */
#include "core/codec/codec.h"
#include "tests/unit/archive_builder.h"
#include "core/base/bounds.h"
#include "core/codec/raw_frame.h"
#include "core/codec/seekable.h"
#include <unistd.h>
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

static const size_t sizes[] = {0, 1, 100, 4095, 4096, 4097, 8192, 100000, 131072, 131073};

TEST(what_is_encoded_is_decoded)
{
	static const uint64_t chunks[] = {0, 4096, 131072};
	uint8_t *data = ab_data(131073, 1), *back = malloc(131073);
	struct kp_encoder *e = encoder(3);

	assert_non_null(back);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		for (size_t c = 0; c < COUNT(chunks); c++) {
			struct ab out = encode(e, data, sizes[i], chunks[c]);
			struct kp_span stored = {out.bytes, out.size};
			uint64_t stated;

			assert_int_equal(kp_zstd_decode(stored, back, sizes[i], &why),
					 KPACK_SUCCESS);
			assert_memory_equal(back, data, sizes[i]);
			assert_true(kp_zstd_content_size(stored, &stated));
			assert_int_equal(stated, sizes[i]);
			stored.size = stored.size < KP_FRAME_HEADER_MAX
					      ? stored.size
					      : KP_FRAME_HEADER_MAX;
			assert_true(kp_zstd_content_size(stored, &stated));
			assert_int_equal(stated, sizes[i]);
			/* the frame has a checksum: bit 2 of its descriptor */
			assert_true(out.bytes[4] & 4);
			ab_free(&out);
		}
	}
	kp_encoder_free(e);
	free(back);
	free(data);
}

TEST(equal_bytes_give_equal_frames)
{
	uint8_t *data = ab_data(100000, 1), *other = ab_data(50000, 2);
	struct kp_encoder *used = encoder(3), *fresh = encoder(3);
	struct ab a, b;

	for (size_t n = 1; n < 50000; n = n * 3 + 1) {
		struct ab warm = encode(used, other, n, n % 2 ? 0 : 4096);
		ab_free(&warm);
	}
	a = encode(used, data, 100000, 0);
	b = encode(fresh, data, 100000, 0);
	assert_int_equal(a.size, b.size);
	assert_memory_equal(a.bytes, b.bytes, a.size);
	ab_free(&a);
	ab_free(&b);
	kp_encoder_free(used);
	kp_encoder_free(fresh);
	kp_encoder_free(NULL);
	free(data);
	free(other);
}

TEST(wrong_sizes_are_refused)
{
	uint8_t data[100] = "data", back[200];
	struct kp_encoder *e = encoder(1);
	struct ab out = encode(e, data, 100, 0);
	struct kp_span stored = {out.bytes, out.size};

	for (size_t n = 0; n < sizeof(back); n++)
		assert_int_equal(kp_zstd_decode(stored, back, n, &why),
				 n == 100 ? KPACK_SUCCESS
					  : KPACK_ERROR_DECOMPRESSION_FAILED);
	for (stored.size = 0; stored.size < out.size; stored.size++)
		assert_int_equal(kp_zstd_decode(stored, back, 100, &why),
				 KPACK_ERROR_DECOMPRESSION_FAILED);
	/* the checksum */
	stored.size = out.size;
	out.bytes[out.size - 1] ^= 1;
	assert_int_equal(kp_zstd_decode(stored, back, 100, &why),
			 KPACK_ERROR_DECOMPRESSION_FAILED);
	ab_free(&out);
	kp_encoder_free(e);
}

TEST(levels_that_are_none_are_clamped_or_refused)
{
	static const int levels[] = {-1000000, -5, 0, 1, 22, 23, 1000000};

	for (size_t i = 0; i < COUNT(levels); i++) {
		struct kp_encoder *e = NULL;
		kpack_error_t err = kp_encoder_new(levels[i], &e, &why);

		assert_true(err == KPACK_SUCCESS || err == KPACK_ERROR_INVALID_ARGUMENT);
		assert_int_equal(e != NULL, err == KPACK_SUCCESS);
		kp_encoder_free(e);
	}
}

TEST(what_cannot_be_is_not_plausible)
{
	assert_true(kp_zstd_plausible(0, 0));
	assert_true(kp_zstd_plausible(9, 0));
	assert_true(kp_zstd_plausible(1000, 1000 * (uint64_t)KP_ZSTD_RATIO_MAX));
	assert_false(kp_zstd_plausible(1000, 1001 * (uint64_t)KP_ZSTD_RATIO_MAX));
	assert_false(kp_zstd_plausible(0, KP_ZSTD_RATIO_MAX));
	assert_false(kp_zstd_plausible(UINT32_MAX, UINT64_MAX));
}

/* zstd's best compression ratio is plausible. */
TEST(zeros_are_plausible)
{
	enum { SIZE = 32 << 20 };
	uint8_t *zeros = calloc(1, SIZE);
	struct kp_encoder *e = encoder(19);
	struct ab out = encode(e, zeros, SIZE, 0);

	assert_true(kp_zstd_plausible(out.size, SIZE));
	ab_free(&out);
	kp_encoder_free(e);
	free(zeros);
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

/* A decoder with a small window can read a stored frame of any size. */
TEST(stored_frames_have_a_small_window)
{
	uint8_t *data = noise(RAW_MAX), piece[1000];
	struct ab frame = raw_frame(data, RAW_MAX);
	ZSTD_DStream *d = ZSTD_createDStream();
	ZSTD_inBuffer in = {frame.bytes, frame.size, 0};
	size_t left = 1, done = 0;

	assert_int_equal(ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, 17), 0);
	while (left) {
		ZSTD_outBuffer out = {piece, sizeof(piece), 0};

		left = ZSTD_decompressStream(d, &out, &in);
		assert_false(ZSTD_isError(left));
		assert_true(out.pos <= RAW_MAX - done);
		assert_memory_equal(piece, data + done, out.pos);
		done += out.pos;
	}
	assert_int_equal(done, RAW_MAX);
	assert_int_equal(in.pos, frame.size);
	ZSTD_freeDStream(d);
	ab_free(&frame);
	free(data);
}

static void assert_tool_reads(struct kp_span stored, const uint8_t *data, size_t size)
{
	char name[] = "/tmp/kpack-codec-XXXXXX", command[64];
	int fd = mkstemp(name);
	uint8_t *back = malloc(size + 1);
	FILE *pipe;

	assert_non_null(back);
	assert_true(fd >= 0 &&
		    write(fd, stored.data, stored.size) == (ssize_t)stored.size);
	snprintf(command, sizeof(command), "zstd -q -dc <%s", name);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_int_equal(fread(back, 1, size + 1, pipe), size);
	assert_int_equal(pclose(pipe), 0);
	assert_memory_equal(back, data, size);
	close(fd);
	unlink(name);
	free(back);
}

TEST(zstds_tool_reads_what_is_stored)
{
	static const uint64_t chunks[] = {0, 4096, 131072};
	uint8_t *data = noise(RAW_MAX);
	struct kp_encoder *e = encoder(3);

	for (size_t i = 0; i < RAW_MAX; i += 5000)
		memset(data + i, 0, 50); /* 1 % zeros */
	for (size_t i = 0; i < COUNT(raw_sizes); i++) {
		struct ab out = raw_frame(data, raw_sizes[i]);

		assert_tool_reads((struct kp_span){out.bytes, out.size}, data,
				  raw_sizes[i]);
		ab_free(&out);
	}
	for (size_t i = 0; i < COUNT(chunks); i++) {
		struct ab out = encode(e, data, RAW_MAX, chunks[i]);

		assert_tool_reads((struct kp_span){out.bytes, out.size}, data, RAW_MAX);
		ab_free(&out);
	}
	kp_encoder_free(e);
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

TEST(the_bound_holds_for_what_is_stored)
{
	for (uint64_t size = 0; size <= UINT64_C(1) << 34;
	     size = size < 300000 ? size + 1 : size + size / 7)
		assert_true(kp_raw_frame_size((size_t)size) <=
			    kp_encode_bound((size_t)size, 0));
}

/* --- seek tables -------------------------------------------------------------------- */

static kpack_error_t read_table(const void *bytes, size_t size, struct kp_seek_row **rows,
				uint32_t *n)
{
	struct kp_source s = kp_source_memory(bytes, size);

	return kp_seek_table_read(&s, rows, n, &why);
}

static kpack_error_t count_bytes(void *sum, const void *data, size_t size,
				 struct kpackx_error *err)
{
	for (size_t i = 0; i < size; i++)
		*(uint64_t *)sum += ((const uint8_t *)data)[i];
	return KPACK_SUCCESS;
}

TEST(what_is_read_in_pieces_is_encoded_the_same)
{
	static uint8_t data[131073];
	struct kp_encoder *e = encoder(3);
	uint64_t all = 0;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i % 7 ? i >> 8 : i * i);
	count_bytes(&all, data, sizeof(data), NULL);
	for (uint64_t chunk = 4096; chunk <= 131072; chunk *= 2) {
		struct kp_source source = kp_source_memory(data, sizeof(data));
		struct ab want = encode(e, data, sizeof(data), chunk);
		uint64_t sum = 0;
		struct kp_sink seen = {.write = count_bytes, .arg = &sum};
		uint8_t *got = NULL;
		size_t size = 0;

		assert_int_equal(
			kp_encode_source(e, &source, chunk, &seen, &got, &size, &why),
			KPACK_SUCCESS);
		assert_true(sum == all);
		assert_int_equal(size, want.size);
		assert_memory_equal(got, want.bytes, size);
		free(got);
		free(want.bytes);
	}
	kp_encoder_free(e);
}

TEST(seek_tables_are_read)
{
	uint8_t *data = ab_data(10000, 1);

	for (int checksums = 0; checksums < 2; checksums++) {
		struct ab a = ab_seekable(data, 10000, 4096, checksums);
		struct kp_seek_row *rows;
		uint32_t n;

		assert_int_equal(read_table(a.bytes, a.size, &rows, &n), KPACK_SUCCESS);
		assert_int_equal(n, 3);
		assert_int_equal(rows[0].size, 4096);
		assert_int_equal(rows[2].size, 10000 - 2 * 4096);
		free(rows);
		for (size_t size = 0; size < a.size; size++)
			assert_int_equal(read_table(a.bytes, size, &rows, &n),
					 KPACK_ERROR_INVALID_FORMAT);
		ab_free(&a);
	}
	free(data);
}

TEST(the_encoders_table_is_the_builders)
{
	uint8_t *data = ab_data(100000, 1);
	struct kp_encoder *e = encoder(3);

	for (size_t i = 0; i < COUNT(sizes); i++) {
		size_t size = sizes[i] < 100000 ? sizes[i] : 100000;
		struct ab ours = encode(e, data, size, 4096);
		struct kp_seek_row *rows;
		size_t at = 0, sum = 0;
		uint8_t *back = malloc(size + 1);
		uint32_t n;

		assert_int_equal(read_table(ours.bytes, ours.size, &rows, &n),
				 KPACK_SUCCESS);
		assert_int_equal(n, size ? (size + 4095) / 4096 : 1);
		for (uint32_t r = 0; r < n; r++) {
			assert_true(rows[r].checked);
			assert_int_equal(rows[r].checksum,
					 (uint32_t)XXH64(data + 4096 * (size_t)r,
							 rows[r].size, 0));
			at += rows[r].stored;
			sum += rows[r].size;
		}
		assert_int_equal(sum, size);
		/* a reader that decodes only the first frame has everything */
		assert_int_equal(ZSTD_findFrameCompressedSize(ours.bytes, ours.size), at);
		assert_int_equal(ZSTD_getFrameContentSize(ours.bytes, at), size);
		assert_int_equal(ZSTD_decompress(back, size, ours.bytes, at), size);
		assert_memory_equal(back, data, size);
		free(back);
		assert_int_equal(ours.size - at, KP_SEEK_TABLE_SIZE(n));
		free(rows);
		ab_free(&ours);
	}
	kp_encoder_free(e);
	free(data);
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

TEST(an_index_of_no_frames_is_right)
{
	uint8_t index[8], blob[4] = {0}, *walked;
	struct kp_source s = kp_source_memory(blob, 4);
	uint32_t n = 7;

	kp_put_le64(index, 4);
	assert_int_equal(kp_frame_index_check((struct kp_span){index, 8}, 4, &n, &why),
			 KPACK_SUCCESS);
	assert_int_equal(n, 0);
	assert_int_equal(kp_frame_index_check((struct kp_span){index, 8}, 5, &n, &why),
			 KPACK_ERROR_INVALID_FORMAT);
	assert_int_equal(kp_frame_index_walk(&s, &walked, &n, &why), KPACK_SUCCESS);
	assert_int_equal(n, 0);
	assert_memory_equal(walked, index, 8);
	free(walked);
	s.size = 3;
	assert_int_equal(kp_frame_index_walk(&s, &walked, &n, &why),
			 KPACK_ERROR_INVALID_FORMAT);
}

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
