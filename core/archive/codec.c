/* SPDX-License-Identifier: MIT */
#include "codec.h"
#include <stdlib.h>
#include <xxhash.h>
#include <zstd.h>
#include <zstd_errors.h>
#include "core/base/bounds.h"
#include "core/base/alloc.h"
#include "frame_header.h"
#include "raw_frame.h"
#include "seekable.h"

/* --- decoding --------------------------------------------------------------------- */

bool kp_zstd_plausible(uint64_t stored, uint64_t size)
{
	return size / KP_ZSTD_RATIO_MAX <= stored;
}

bool kp_zstd_content_size(struct kp_span head, uint64_t *size)
{
	struct kp_frame_header h;

	if (!kp_frame_header_read(head, &h) || h.skippable)
		return false;
	*size = h.content;
	return h.content != KP_FRAME_SIZE_UNKNOWN;
}

kpack_error_t kp_zstd_fail(size_t code, uint64_t size, struct kpackx_error *why)
{
	if (ZSTD_getErrorCode(code) == ZSTD_error_dstSize_tooSmall)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "frame decodes to more than its %llu bytes",
			       (unsigned long long)size);
	if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation)
		return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY,
			       "out of memory: decoding a frame of %llu bytes",
			       (unsigned long long)size);
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED, "frame: %s",
		       ZSTD_getErrorName(code));
}

kpack_error_t kp_zstd_decode(struct kp_span stored, void *buf, size_t size,
			     struct kpackx_error *why)
{
	size_t n = ZSTD_decompress(buf, size, stored.data, stored.size);

	if (ZSTD_isError(n))
		return kp_zstd_fail(n, size, why);
	if (n != size)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "frame decodes to %zu bytes instead of %zu", n, size);
	return KPACK_SUCCESS;
}

/* --- encoding --------------------------------------------------------------------- */

struct kp_encoder {
	ZSTD_CCtx *ctx;
	ZSTD_CCtx *parts; /* for frames in parts; NULL: none was written */
	int level;
};

kpack_error_t kp_encoder_new(int level, struct kp_encoder **out, struct kpackx_error *why)
{
	struct kp_encoder *e = calloc(1, sizeof(*e));
	size_t err;

	if (!e)
		return kp_fail_memory(why, sizeof(*e), "encoder");
	e->level = level;
	e->ctx = ZSTD_createCCtx();
	if (!e->ctx) {
		free(e);
		return kp_fail_memory(why, sizeof(*e), "encoder");
	}
	err = ZSTD_CCtx_setParameter(e->ctx, ZSTD_c_compressionLevel, level);
	if (!ZSTD_isError(err))
		err = ZSTD_CCtx_setParameter(e->ctx, ZSTD_c_checksumFlag, 1);
	if (ZSTD_isError(err)) {
		kp_encoder_free(e);
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "level %d: %s", level,
			       ZSTD_getErrorName(err));
	}
	*out = e;
	return KPACK_SUCCESS;
}

void kp_encoder_free(struct kp_encoder *e)
{
	if (!e)
		return;
	ZSTD_freeCCtx(e->ctx);
	ZSTD_freeCCtx(e->parts);
	free(e);
}

struct kp_dictionary {
	ZSTD_CDict *zstd;
};

kpack_error_t kp_dictionary_new(int level, struct kp_span data,
				struct kp_dictionary **out, struct kpackx_error *why)
{
	struct kp_dictionary *d = calloc(1, sizeof(*d));

	if (d)
		d->zstd = ZSTD_createCDict(data.data, data.size, level);
	if (!d || !d->zstd) {
		free(d);
		return kp_fail_memory(why, data.size, "a dictionary");
	}
	*out = d;
	return KPACK_SUCCESS;
}

void kp_dictionary_free(struct kp_dictionary *d)
{
	if (d)
		ZSTD_freeCDict(d->zstd);
	free(d);
}

kpack_error_t kp_encoder_use(struct kp_encoder *e, const struct kp_dictionary *d,
			     struct kpackx_error *why)
{
	size_t err = ZSTD_CCtx_refCDict(e->ctx, d ? d->zstd : NULL);

	if (ZSTD_isError(err))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "dictionary: %s",
			       ZSTD_getErrorName(err));
	return KPACK_SUCCESS;
}

size_t kp_encoder_memory(const struct kp_encoder *e)
{
	return ZSTD_sizeof_CCtx(e->ctx) + ZSTD_sizeof_CCtx(e->parts);
}

static size_t chunk_count(size_t size, uint64_t chunk)
{
	return size ? (size_t)((size - 1) / chunk + 1) : 1;
}

size_t kp_encode_bound(size_t size, uint64_t chunk)
{
	size_t n;

	if (chunk == 0)
		return ZSTD_compressBound(size);
	n = chunk_count(size, chunk);
	return n * ZSTD_compressBound(size < chunk ? size : (size_t)chunk) +
	       KP_FRAME_HEADER_MAX + KP_SEEK_TABLE_SIZE(n);
}

/*
 * Whether compression saves something, but too little to be worth decoding at every read.
 * A frame that saves nothing already stores its blocks uncompressed.
 */
static bool saves_little(size_t size, size_t encoded)
{
	return encoded < size && size - encoded < size / 64;
}

static kpack_error_t encode_frame(struct kp_encoder *e, struct kp_span data, uint8_t *out,
				  size_t cap, size_t *size, struct kpackx_error *why)
{
	size_t n = ZSTD_compress2(e->ctx, out, cap, data.data, data.size);

	if (ZSTD_isError(n))
		return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY,
			       "compressing %zu bytes: %s", data.size,
			       ZSTD_getErrorName(n));
	*size = n;
	if (saves_little(data.size, n)) {
		kp_raw_frame_write(data, out);
		*size = kp_raw_frame_size(data.size);
	}
	return KPACK_SUCCESS;
}

/* --- parts of a frame --------------------------------------------------------------- */

/* zstd's smallest job, and the window above which a level's own one is left. */
enum { JOB_MIN = 512 << 10, PART_WINDOW_LOG_MAX = 21 };

/* Bytes of the header that zstd writes for an unknown size, and of ours. */
enum { UNSIZED_HEADER = 6, SIZED_HEADER = 14 };

static size_t set_parts(ZSTD_CCtx *ctx, int level, size_t chunk)
{
	int log = 10;
	const struct {
		ZSTD_cParameter name;
		int value;
	} parameters[] = {
		{ZSTD_c_nbWorkers, 1},
		{ZSTD_c_compressionLevel, level},
		{ZSTD_c_checksumFlag, 1},
		{ZSTD_c_overlapLog, 1}, /* a job refers to nothing before it */
		{ZSTD_c_jobSize, (int)(chunk < JOB_MIN ? JOB_MIN : chunk)},
	};
	size_t err = 0;

	while ((size_t)1 << log < chunk && log <= PART_WINDOW_LOG_MAX)
		log++;
	for (size_t i = 0; i < KP_COUNT(parameters); i++) {
		err = ZSTD_CCtx_setParameter(ctx, parameters[i].name,
					     parameters[i].value);
		if (ZSTD_isError(err))
			return err;
	}
	return ZSTD_CCtx_setParameter(ctx, ZSTD_c_windowLog,
				      log > PART_WINDOW_LOG_MAX ? 0 : log);
}

/*
 * Begin a frame in parts.  zstd's jobs are such parts: each flush ends one.  false: this
 * libzstd has no threads.
 */
static bool begin_parts(struct kp_encoder *e, size_t chunk)
{
	if (!e->parts)
		e->parts = ZSTD_createCCtx();
	return e->parts &&
	       !ZSTD_isError(
		       ZSTD_CCtx_reset(e->parts, ZSTD_reset_session_and_parameters)) &&
	       !ZSTD_isError(set_parts(e->parts, e->level, chunk));
}

static kpack_error_t encode_part(struct kp_encoder *e, struct kp_span data, bool last,
				 uint8_t *out, size_t cap, size_t *size,
				 struct kpackx_error *why)
{
	ZSTD_outBuffer to = {out, cap, 0};
	ZSTD_inBuffer from = {data.data, data.size, 0};
	size_t left;

	do {
		left = ZSTD_compressStream2(e->parts, &to, &from,
					    last ? ZSTD_e_end : ZSTD_e_flush);
	} while (!ZSTD_isError(left) && (left || from.pos < from.size) &&
		 to.pos < to.size);
	if (ZSTD_isError(left) || left)
		return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY,
			       "compressing %zu bytes: %s", data.size,
			       ZSTD_isError(left) ? ZSTD_getErrorName(left) : "no room");
	*size = to.pos;
	return KPACK_SUCCESS;
}

/*
 * Write the header of a frame of SIZE bytes over the one that zstd wrote, which ends at
 * OUT + SIZED_HEADER.  zstd makes no jobs of small data whose size it knows.
 */
static void write_sized_header(uint64_t size, uint8_t *out)
{
	uint8_t window = out[SIZED_HEADER - 1];

	kp_put_le32(out, 0xfd2fb528);
	out[4] = 3 << 6 | 1 << 2; /* 8 bytes of content size; a checksum */
	out[5] = window;
	kp_put_le64(out + UNSIZED_HEADER, size);
}

/* The state of encoding a source in chunks. */
struct chunk_writer {
	struct kp_encoder *e;
	const struct kp_source *source;
	size_t chunk, n;
	struct kp_sink *seen; /* or NULL */
	struct kp_seek_row *rows;
	uint8_t *raw;
	uint8_t *out;
	size_t size, cap;
	bool fixed; /* the caller owns OUT, which has enough room */
	bool parts; /* of one frame */
};

static kpack_error_t make_room(struct chunk_writer *w, size_t size,
			       struct kpackx_error *why)
{
	size_t cap = w->size + w->size / 2 + 8 * size;
	uint8_t *bigger;

	if (w->cap - w->size >= size)
		return KPACK_SUCCESS;
	bigger = w->fixed ? NULL : realloc(w->out, cap);
	if (!bigger)
		return kp_fail_memory(why, cap, "chunks");
	w->out = bigger;
	w->cap = cap;
	return KPACK_SUCCESS;
}

static kpack_error_t append_part(struct chunk_writer *w, struct kp_span data, size_t row,
				 size_t *used, struct kpackx_error *why)
{
	size_t before = row == 0 ? SIZED_HEADER - UNSIZED_HEADER : 0;
	uint8_t *out = w->out + w->size;

	KP_TRY(encode_part(w->e, data, row + 1 == w->n, out + before,
			   w->cap - w->size - before, used, why));
	*used += before;
	if (row == 0)
		write_sized_header(w->source->size, out);
	return KPACK_SUCCESS;
}

static kpack_error_t append_chunk(struct chunk_writer *w, struct kp_span data, size_t row,
				  struct kpackx_error *why)
{
	size_t used = 0;

	KP_TRY(make_room(w, ZSTD_compressBound(data.size) + KP_FRAME_HEADER_MAX, why));
	if (w->parts)
		KP_TRY(append_part(w, data, row, &used, why));
	else
		KP_TRY(encode_frame(w->e, data, w->out + w->size, w->cap - w->size, &used,
				    why));
	w->rows[row] = (struct kp_seek_row){
		.stored = (uint32_t)used,
		.size = (uint32_t)data.size,
		.checksum = (uint32_t)XXH64(data.data, data.size, 0),
	};
	w->size += used;
	return KPACK_SUCCESS;
}

static kpack_error_t append_all(struct chunk_writer *w, struct kpackx_error *why)
{
	size_t table = KP_SEEK_TABLE_SIZE(w->n);

	for (size_t i = 0; i < w->n; i++) {
		uint64_t at = (uint64_t)i * w->chunk, left = w->source->size - at;
		struct kp_span data = {w->raw, left < w->chunk ? (size_t)left : w->chunk};

		KP_TRY(kp_source_read(w->source, at, w->raw, data.size, why));
		if (w->seen)
			KP_TRY(kp_sink_put(w->seen, data.data, data.size, why));
		KP_TRY(append_chunk(w, data, i, why));
	}
	KP_TRY(make_room(w, table, why));
	kp_seek_table_write(w->rows, (uint32_t)w->n, w->out + w->size);
	w->size += table;
	return KPACK_SUCCESS;
}

static kpack_error_t write_chunks(struct chunk_writer *w, struct kpackx_error *why)
{
	kpack_error_t err;

	w->n = chunk_count((size_t)w->source->size, w->chunk);
	w->parts = w->n > 1 && begin_parts(w->e, w->chunk);
	w->rows = calloc(w->n, sizeof(*w->rows));
	w->raw = malloc(w->chunk);
	err = w->rows && w->raw ? append_all(w, why)
				: kp_fail_memory(why, w->n * sizeof(*w->rows), "chunks");
	free(w->rows);
	free(w->raw);
	return err;
}

kpack_error_t kp_encode_source(struct kp_encoder *e, const struct kp_source *source,
			       uint64_t chunk, struct kp_sink *seen, uint8_t **out,
			       size_t *size, struct kpackx_error *why)
{
	struct chunk_writer w = {
		.e = e, .source = source, .chunk = (size_t)chunk, .seen = seen};
	kpack_error_t err = write_chunks(&w, why);

	if (err) {
		free(w.out);
		return err;
	}
	*out = kp_large_trim(w.out, w.size);
	*size = w.size;
	return KPACK_SUCCESS;
}

static kpack_error_t encode_chunks(struct kp_encoder *e, struct kp_span data,
				   size_t chunk, uint8_t *out, size_t cap, size_t *size,
				   struct kpackx_error *why)
{
	struct kp_source source = kp_source_memory(data.data, data.size);
	struct chunk_writer w = {.e = e,
				 .source = &source,
				 .chunk = chunk,
				 .out = out,
				 .cap = cap,
				 .fixed = true};

	KP_TRY(write_chunks(&w, why));
	*size = w.size;
	return KPACK_SUCCESS;
}

kpack_error_t kp_encode(struct kp_encoder *e, struct kp_span data, uint64_t chunk,
			uint8_t *out, size_t cap, size_t *size, struct kpackx_error *why)
{
	if (chunk == 0)
		return encode_frame(e, data, out, cap, size, why);
	return encode_chunks(e, data, (size_t)chunk, out, cap, size, why);
}

/* --- frame index ------------------------------------------------------------------ */

kpack_error_t kp_frame_index_check(struct kp_span index, uint64_t blob_size,
				   uint32_t *count, struct kpackx_error *why)
{
	size_t n = index.size / 8;
	uint64_t last = 4;

	if (index.size % 8 || n == 0 || n - 1 > KP_FRAMES_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "frame_index: %zu bytes are not 1 to %u offsets",
			       index.size, KP_FRAMES_MAX + 1);
	if (kp_le64(index.data) != 4 || kp_le64(index.data + 8 * (n - 1)) != blob_size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "frame_index: runs from %llu to %llu, not from 4 to %llu",
			       (unsigned long long)kp_le64(index.data),
			       (unsigned long long)kp_le64(index.data + 8 * (n - 1)),
			       (unsigned long long)blob_size);
	for (size_t i = 1; i < n; i++) {
		uint64_t at = kp_le64(index.data + 8 * i);

		if (at < last || at - last < 4 || at - last - 4 > UINT32_MAX)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "frame_index: offset %zu is %llu after %llu", i,
				       (unsigned long long)at, (unsigned long long)last);
		last = at;
	}
	*count = (uint32_t)(n - 1);
	return KPACK_SUCCESS;
}

/* A window over the blob, so that not every skipped small frame costs a read. */
struct window {
	const struct kp_source *blob;
	uint8_t *buf;
	size_t cap;
	uint64_t begin;
	size_t size;
};

static const size_t WINDOW_MIN = 4096, WINDOW_MAX = 1 << 20, NEAR = 16 << 10;

/* Window size for N frames: few frames take few reads even with a small window. */
static size_t window_size(uint32_t n)
{
	size_t size = 64 * (size_t)n;

	return size < WINDOW_MIN ? WINDOW_MIN : size < WINDOW_MAX ? size : WINDOW_MAX;
}

/*
 * Reads small frames in large steps; of each large frame, which it skips, reads little.
 */
static kpack_error_t window_word(struct window *w, uint64_t at, uint32_t *word,
				 struct kpackx_error *why)
{
	if (!kp_range_ok(w->blob->size, at, 4))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "blob: length word at %llu of %llu bytes",
			       (unsigned long long)at, (unsigned long long)w->blob->size);
	if (at < w->begin || !kp_range_ok(w->size, at - w->begin, 4)) {
		bool near = w->size && at - w->begin < w->size + NEAR;
		uint64_t left = w->blob->size - at;
		size_t n = near ? w->cap : WINDOW_MIN;

		w->size = 0;
		KP_TRY(kp_source_read(w->blob, at, w->buf, left < n ? (size_t)left : n,
				      why));
		w->begin = at;
		w->size = left < n ? (size_t)left : n;
	}
	*word = kp_le32(w->buf + (at - w->begin));
	return KPACK_SUCCESS;
}

static kpack_error_t walk_frames(struct window *w, uint8_t *index, uint32_t n,
				 struct kpackx_error *why)
{
	uint64_t at = 4, size = w->blob->size;
	uint32_t len = 0;

	for (uint32_t i = 0; i < n; i++) {
		kp_put_le64(index + 8 * (size_t)i, at);
		KP_TRY(window_word(w, at, &len, why));
		if (!kp_range_ok(size, at + 4, len))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "blob: frame %u: %u bytes at %llu of %llu", i, len,
				       (unsigned long long)at + 4,
				       (unsigned long long)size);
		at += 4 + (uint64_t)len;
	}
	kp_put_le64(index + 8 * (size_t)n, at);
	return KPACK_SUCCESS;
}

static kpack_error_t read_count(const struct kp_source *blob, uint32_t *n,
				struct kpackx_error *why)
{
	uint8_t word[4];

	if (blob->size < sizeof(word))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "blob: %llu bytes have no count of frames",
			       (unsigned long long)blob->size);
	KP_TRY(kp_source_read(blob, 0, word, sizeof(word), why));
	*n = kp_le32(word);
	if (*n > KP_FRAMES_MAX || *n > (blob->size - 4) / 4)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "blob: %u frames in %llu bytes, limit %u", *n,
			       (unsigned long long)blob->size, KP_FRAMES_MAX);
	return KPACK_SUCCESS;
}

kpack_error_t kp_frame_index_walk(const struct kp_source *blob, uint8_t **index,
				  uint32_t *count, struct kpackx_error *why)
{
	struct window w = {.blob = blob};
	uint8_t *table;
	kpack_error_t err;
	uint32_t n = 0;

	KP_TRY(read_count(blob, &n, why));
	w.cap = window_size(n);
	w.buf = malloc(w.cap);
	table = kp_large_alloc(8 * ((size_t)n + 1));
	err = w.buf && table ? walk_frames(&w, table, n, why)
			     : kp_fail_memory(why, 8 * ((uint64_t)n + 1), "frame index");
	free(w.buf);
	if (err) {
		free(table);
		return err;
	}
	*index = table;
	*count = n;
	return KPACK_SUCCESS;
}
