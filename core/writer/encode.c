/* SPDX-License-Identifier: MIT */
/*
 * Three kinds of frames.  What becomes hardly smaller gets a frame of raw blocks, which is
 * read just by copying.  Everything else is a frame of zstd's one-shot encoder.  Chunks are
 * one frame, too, if libzstd has threads: its jobs refer to nothing before them when their
 * overlap is turned off, and a flush ends one, so that each can be decoded alone.
 */
#include "encode.h"
#include <stdlib.h>
#include <xxhash.h>
#include <zstd.h>
#include "core/archive/chunks.h"
#include "core/archive/frames.h"
#include "core/base/alloc.h"

struct kp_encoder {
	ZSTD_CCtx *ctx;
	ZSTD_CCtx *parts; /* for frames in parts; NULL: none was written */
	int level;
};

kpack_error_t kp_encoder_new(int level, struct kp_encoder **out, struct kpackx_error *why)
{
	struct kp_encoder *e;
	size_t err;

	KP_TRY(kp_new(&e, 1, "encoder", why));
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

size_t kp_encoder_memory(const struct kp_encoder *e)
{
	return ZSTD_sizeof_CCtx(e->ctx) + ZSTD_sizeof_CCtx(e->parts);
}

kpack_error_t kp_encoder_use(struct kp_encoder *e, const struct ZSTD_CDict_s *d,
			     struct kpackx_error *why)
{
	size_t err = ZSTD_CCtx_refCDict(e->ctx, d);

	if (ZSTD_isError(err))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "dictionary: %s",
			       ZSTD_getErrorName(err));
	return KPACK_SUCCESS;
}

/* --- bytes as they are ------------------------------------------------------------------ */

/* A block's content and header, and the checksum at a frame's end. */
enum { BLOCK = 128 << 10, BLOCK_HEAD = 3, CHECKSUM = 4 };

/* A window of 128 KiB: decoders refuse windows of a large file's size. */
static const uint8_t WINDOW = 7 << 3;

/*
 * How a header states the decoded size.  Up to the size of a block the frame is a single
 * segment, without a window; only single segments have the one-byte form.
 */
struct size_form {
	uint64_t max;      /* largest size */
	uint8_t flag;      /* in the descriptor */
	uint8_t bytes;     /* of the field */
	uint16_t subtract; /* from the size */
	bool single;
};

static const struct size_form *form_of(uint64_t size)
{
	static const struct size_form forms[] = {
		{255, 0, 1, 0, true},         {65535 + 256, 1, 2, 256, true},
		{BLOCK, 2, 4, 0, true},       {UINT32_MAX, 2, 4, 0, false},
		{UINT64_MAX, 3, 8, 0, false},
	};
	const struct size_form *f = forms;

	while (size > f->max)
		f++;
	return f;
}

size_t kp_raw_frame_size(size_t size)
{
	const struct size_form *f = form_of(size);
	size_t blocks =
		size ? (size - 1) / BLOCK + 1 : 1; /* the last one, even if empty */

	return 5 + !f->single + f->bytes + BLOCK_HEAD * blocks + size + CHECKSUM;
}

void kp_raw_frame_write(struct kp_span data, uint8_t *out)
{
	const struct size_form *f = form_of(data.size);
	struct kp_span rest = data;
	uint8_t field[8];
	bool last;

	kp_put_le32(out, KP_FRAME_MAGIC);
	out += 4;
	*out++ = (uint8_t)(f->flag << 6 | (f->single ? KP_FRAME_SINGLE_SEGMENT : 0) |
			   KP_FRAME_CHECKSUM);
	if (!f->single)
		*out++ = WINDOW;
	kp_put_le64(field, data.size - f->subtract);
	memcpy(out, field, f->bytes);
	out += f->bytes;
	do {
		size_t n = rest.size > BLOCK ? BLOCK : rest.size;

		last = n == rest.size;
		kp_put_le32(field, (uint32_t)n << 3 | last);
		memcpy(out, field, BLOCK_HEAD);
		out += BLOCK_HEAD;
		if (n)
			memcpy(out, rest.data, n);
		out += n;
		rest = kp_span_tail(rest, n);
	} while (!last);
	kp_put_le32(out, (uint32_t)XXH64(data.data, data.size, 0));
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
	/*
	 * Compression that saves too little is not worth decoding at every read.  A frame that
	 * saves nothing already has its blocks uncompressed.
	 */
	if (n < data.size && data.size - n < data.size / 64) {
		kp_raw_frame_write(data, out);
		*size = kp_raw_frame_size(data.size);
	}
	return KPACK_SUCCESS;
}

/* --- parts of a frame --------------------------------------------------------------- */

/* Bytes of the header that zstd writes for an unknown size, and of ours. */
enum { UNSIZED_HEADER = 6, SIZED_HEADER = 14 };

/*
 * Begin a frame in parts.  zstd's jobs are such parts: each flush ends one.  false: this
 * libzstd has no threads.
 */
static bool begin_parts(struct kp_encoder *e, size_t chunk)
{
	/* zstd's smallest job, and the window above which a level's own one is left */
	enum { JOB_MIN = 512 << 10, WINDOW_LOG_MAX = 21 };
	int log = 10;

	while ((size_t)1 << log < chunk && log <= WINDOW_LOG_MAX)
		log++;
	if (!e->parts)
		e->parts = ZSTD_createCCtx();
	const struct {
		ZSTD_cParameter name;
		int value;
	} parameters[] = {
		{ZSTD_c_nbWorkers, 1},
		{ZSTD_c_compressionLevel, e->level},
		{ZSTD_c_checksumFlag, 1},
		{ZSTD_c_overlapLog, 1}, /* a job refers to nothing before it */
		{ZSTD_c_jobSize, (int)(chunk < JOB_MIN ? JOB_MIN : chunk)},
		{ZSTD_c_windowLog, log > WINDOW_LOG_MAX ? 0 : log},
	};

	if (!e->parts ||
	    ZSTD_isError(ZSTD_CCtx_reset(e->parts, ZSTD_reset_session_and_parameters)))
		return false;
	for (size_t i = 0; i < KP_COUNT(parameters); i++)
		if (ZSTD_isError(ZSTD_CCtx_setParameter(e->parts, parameters[i].name,
							parameters[i].value)))
			return false;
	return true;
}

/* --- chunks --------------------------------------------------------------------------- */

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
 * Write all chunks and the seek table to *OUT, of *CAP bytes.  GROWS: the block is made
 * larger when there is no room; else it has enough.
 */
static kpack_error_t encode_chunks(struct kp_encoder *e, const struct kp_source *source,
				   size_t chunk, struct kp_sink *seen, bool grows,
				   uint8_t **out, size_t cap, size_t *size,
				   struct kpackx_error *why)
{
	size_t n = chunk_count((size_t)source->size, chunk), at = 0;
	bool parts = n > 1 && begin_parts(e, chunk);
	KP_AUTO_FREE uint8_t *raw = NULL, *table = NULL;
	uint8_t *row;

	KP_TRY(kp_new(&table, KP_SEEK_TABLE_SIZE(n), "chunks", why));
	raw = malloc(chunk);
	if (!raw)
		return kp_fail_memory(why, chunk, "chunks");
	kp_put_le32(table, KP_SEEK_FRAME);
	kp_put_le32(table + 4, (uint32_t)(KP_SEEK_TABLE_SIZE(n) - KP_SEEK_HEAD));
	row = table + KP_SEEK_HEAD;
	for (size_t i = 0; i <= n; i++) {
		uint64_t from = (uint64_t)i * chunk,
			 left = i < n ? source->size - from : 0;
		struct kp_span data = {raw, left < chunk ? (size_t)left : chunk};
		size_t room = i < n ? ZSTD_compressBound(data.size) + KP_FRAME_HEADER_MAX
				    : KP_SEEK_TABLE_SIZE(n);
		size_t used = 0;

		if (cap - at < room) {
			uint8_t *bigger = NULL;

			cap = at + at / 2 + 8 * room;
			if (grows)
				bigger = realloc(*out, cap);
			if (!bigger)
				return kp_fail_memory(why, cap, "chunks");
			*out = bigger;
		}
		if (i == n)
			break;
		KP_TRY(kp_source_read(source, from, raw, data.size, why));
		if (seen)
			KP_TRY(kp_sink_put(seen, data.data, data.size, why));
		if (!parts)
			KP_TRY(encode_frame(e, data, *out + at, cap - at, &used, why));
		if (parts) {
			ZSTD_outBuffer to = {*out + at, cap - at,
					     i ? 0 : SIZED_HEADER - UNSIZED_HEADER};
			ZSTD_inBuffer in = {raw, data.size, 0};
			size_t rest;

			do {
				rest = ZSTD_compressStream2(e->parts, &to, &in,
							    i + 1 == n ? ZSTD_e_end
								       : ZSTD_e_flush);
			} while (!ZSTD_isError(rest) && (rest || in.pos < in.size) &&
				 to.pos < to.size);
			if (ZSTD_isError(rest) || rest)
				return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY,
					       "compressing %zu bytes: %s", data.size,
					       ZSTD_isError(rest)
						       ? ZSTD_getErrorName(rest)
						       : "no room");
			used = to.pos;
		}
		/* zstd makes no jobs of small data whose size it knows: state it here */
		if (parts && i == 0) {
			uint8_t *frame = *out + at, window = frame[SIZED_HEADER - 1];

			kp_put_le32(frame, KP_FRAME_MAGIC);
			frame[4] =
				3 << 6 | KP_FRAME_CHECKSUM; /* 8 bytes of content size */
			frame[5] = window;
			kp_put_le64(frame + UNSIZED_HEADER, source->size);
		}
		kp_put_le32(row, (uint32_t)used);
		kp_put_le32(row + 4, (uint32_t)data.size);
		kp_put_le32(row + 8, (uint32_t)XXH64(data.data, data.size, 0));
		row += 12;
		at += used;
	}
	kp_put_le32(row, (uint32_t)n);
	row[4] = KP_SEEK_SUMS;
	kp_put_le32(row + 5, KP_SEEK_MAGIC);
	memcpy(*out + at, table, KP_SEEK_TABLE_SIZE(n));
	*size = at + KP_SEEK_TABLE_SIZE(n);
	return KPACK_SUCCESS;
}

kpack_error_t kp_encode(struct kp_encoder *e, struct kp_span data, uint64_t chunk,
			uint8_t *out, size_t cap, size_t *size, struct kpackx_error *why)
{
	struct kp_source source = kp_source_memory(data.data, data.size);

	if (chunk == 0)
		return encode_frame(e, data, out, cap, size, why);
	return encode_chunks(e, &source, (size_t)chunk, NULL, false, &out, cap, size,
			     why);
}

kpack_error_t kp_encode_source(struct kp_encoder *e, const struct kp_source *source,
			       uint64_t chunk, struct kp_sink *seen, uint8_t **out,
			       size_t *size, struct kpackx_error *why)
{
	uint8_t *block = NULL;
	kpack_error_t err =
		encode_chunks(e, source, (size_t)chunk, seen, true, &block, 0, size, why);

	if (err) {
		free(block);
		return err;
	}
	*out = kp_large_trim(block, *size);
	return KPACK_SUCCESS;
}
