/* SPDX-License-Identifier: MIT */
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_d_stableOutBuffer: decode without a window copy */
#include <stdlib.h>
#include <xxhash.h>
#include <zstd.h>
#include "archive.h"

/* Compressed bytes fed at a time: small enough that decoding pauses every few hundred KiB. */
enum { INPUT = 64 << 10 };

struct kp_stream {
	const struct kpack_archive *archive;
	size_t entry;
	struct kp_source stored;
	uint64_t stored_at; /* next stored byte to read */

	uint8_t *out;
	uint64_t size, done; /* of the decoded bytes */
	kpack_error_t (*advance)(struct kp_stream *s, uint64_t until,
				 struct kpackx_error *why);

	struct kp_chunks *chunks;
	ZSTD_DStream *zstd;
	ZSTD_inBuffer in;
	bool in_frame; /* began, did not end */
	uint8_t *input;

	struct kp_meta meta;
	XXH3_state_t *hash; /* NULL: the entry has no xxh3 */
	uint64_t hashed;
};

static kpack_error_t advance_plain(struct kp_stream *s, uint64_t until,
				   struct kpackx_error *why)
{
	KP_TRY(kp_source_read(&s->stored, s->done, s->out + s->done,
			      (size_t)(until - s->done), why));
	s->done = until;
	return KPACK_SUCCESS;
}

static kpack_error_t advance_chunks(struct kp_stream *s, uint64_t until,
				    struct kpackx_error *why)
{
	uint64_t chunk = kp_chunks_size(s->chunks);

	while (s->done < until) {
		KP_TRY(kp_chunks_read(s->chunks, s->done / chunk, s->out + s->done, why));
		s->done = s->size - s->done < chunk ? s->size : s->done + chunk;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t refill(struct kp_stream *s, struct kpackx_error *why)
{
	uint64_t left = s->stored.size - s->stored_at;
	size_t n = left < INPUT ? (size_t)left : INPUT;

	KP_TRY(kp_source_read(&s->stored, s->stored_at, s->input, n, why));
	s->stored_at += n;
	s->in = (ZSTD_inBuffer){s->input, n, 0};
	return KPACK_SUCCESS;
}

/* No input is left: the last frame must have ended, and all bytes be there. */
static kpack_error_t check_end(const struct kp_stream *s, struct kpackx_error *why)
{
	if (s->in_frame)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "frame ends after %llu of %llu decoded bytes",
			       (unsigned long long)s->done, (unsigned long long)s->size);
	if (s->done != s->size)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "frame decodes to %llu bytes instead of %llu",
			       (unsigned long long)s->done, (unsigned long long)s->size);
	return KPACK_SUCCESS;
}

/* The last bytes are not there before all frames ended: a checksum may still come. */
static kpack_error_t advance_zstd(struct kp_stream *s, uint64_t until,
				  struct kpackx_error *why)
{
	ZSTD_outBuffer out = {s->out, (size_t)s->size, (size_t)s->done};

	for (;;) {
		size_t n;

		if (s->in.pos == s->in.size) {
			if (s->stored_at == s->stored.size)
				return check_end(s, why);
			KP_TRY(refill(s, why));
		}
		n = ZSTD_decompressStream(s->zstd, &out, &s->in);
		if (ZSTD_isError(n))
			return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED, "frame: %s",
				       ZSTD_getErrorName(n));
		s->in_frame = n != 0;
		s->done = out.pos;
		if (s->done >= until && s->done < s->size)
			return KPACK_SUCCESS;
	}
}

static kpack_error_t open_zstd(struct kp_stream *s, struct kpackx_error *why)
{
	size_t err;

	s->advance = advance_zstd;
	s->input = malloc(INPUT);
	s->zstd = ZSTD_createDStream();
	if (!s->input || !s->zstd)
		return kp_fail_memory(why, INPUT, "decoding");
	err = ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_stableOutBuffer, 1);
	if (!ZSTD_isError(err)) /* the output is the window: none is too wide */
		err = ZSTD_DCtx_setParameter(
			s->zstd, ZSTD_d_windowLogMax,
			ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);
	if (ZSTD_isError(err))
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED, "decoder: %s",
			       ZSTD_getErrorName(err));
	return KPACK_SUCCESS;
}

static kpack_error_t open_hash(struct kp_stream *s, struct kpackx_error *why)
{
	if (!s->meta.has_xxh3)
		return KPACK_SUCCESS;
	s->hash = XXH3_createState();
	if (!s->hash)
		return kp_fail_memory(why, 0, "hashing");
	XXH3_128bits_reset(s->hash);
	return KPACK_SUCCESS;
}

static kpack_error_t open_stream(struct kp_stream *s, struct kpackx_error *why)
{
	struct kp_entry_info info;

	kp_archive_entry(s->archive, s->entry, &info);
	kp_archive_meta(s->archive, s->entry, &s->meta);
	s->size = info.size;
	KP_TRY(kp_archive_source(s->archive, s->entry, &s->stored, why));
	KP_TRY(open_hash(s, why));
	if (strcmp(kp_archive_scheme(s->archive), "none") == 0) {
		s->advance = advance_plain;
		return KPACK_SUCCESS;
	}
	if (s->meta.chunk) {
		s->advance = advance_chunks;
		return kp_chunks_open(s->archive, s->entry, &s->chunks, why);
	}
	return open_zstd(s, why);
}

kpack_error_t kp_stream_open(const struct kpack_archive *a, size_t entry, void *buf,
			     struct kp_stream **out, struct kpackx_error *why)
{
	struct kp_stream *s = calloc(1, sizeof(*s));
	kpack_error_t err;

	if (!s)
		return kp_fail_memory(why, sizeof(*s), "a stream");
	s->archive = a;
	s->entry = entry;
	s->out = buf;
	err = open_stream(s, why);
	if (err)
		kp_stream_close(s);
	else
		*out = s;
	return err;
}

static kpack_error_t check_hash(struct kp_stream *s, struct kpackx_error *why)
{
	XXH128_canonical_t have;

	if (!s->hash)
		return KPACK_SUCCESS;
	XXH3_128bits_update(s->hash, s->out + s->hashed, (size_t)(s->done - s->hashed));
	s->hashed = s->done;
	if (s->done < s->size)
		return KPACK_SUCCESS;
	XXH128_canonicalFromHash(&have, XXH3_128bits_digest(s->hash));
	if (memcmp(have.digest, s->meta.xxh3, sizeof(s->meta.xxh3)) != 0)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "content does not match its xxh3");
	return KPACK_SUCCESS;
}

kpack_error_t kp_stream_step(struct kp_stream *s, uint64_t step, uint64_t *ready,
			     struct kpackx_error *why)
{
	uint64_t left = s->size - s->done;

	KP_TRY(s->advance(s, left < step ? s->size : s->done + step, why));
	KP_TRY(check_hash(s, why));
	*ready = s->done;
	return KPACK_SUCCESS;
}

void kp_stream_close(struct kp_stream *s)
{
	if (!s)
		return;
	kp_chunks_close(s->chunks);
	ZSTD_freeDStream(s->zstd);
	XXH3_freeState(s->hash);
	free(s->input);
	free(s);
}
