/* SPDX-License-Identifier: MIT */
/* Reading a part of an entry without holding the rest in memory. */
#include <stdlib.h>
#include <zstd.h>
#include "archive.h"
#include "core/codec/frame_header.h"
#include "core/codec/frames.h"
#include "core/base/alloc.h"

/* The part [BEGIN, END) of an entry of SIZE bytes; it is not empty. */
struct range {
	const struct kpack_archive *archive;
	size_t entry;
	uint64_t size, begin, end;
	uint8_t *buf;
};

/* --- chunks ----------------------------------------------------------------------- */

static size_t scratch_size(const struct range *r, const struct kp_chunks *c)
{
	uint64_t chunk = kp_chunks_size(c);

	return (size_t)(r->size < chunk ? r->size : chunk);
}

/* Decode chunk K, and copy the part of it that is in the range. */
static kpack_error_t take_chunk(const struct range *r, const struct kp_chunks *c,
				uint64_t k, uint8_t **scratch, struct kpackx_error *why)
{
	uint64_t at = k * kp_chunks_size(c), left = r->size - at;
	uint64_t end = at + (left < kp_chunks_size(c) ? left : kp_chunks_size(c));
	uint64_t from = at < r->begin ? r->begin : at, to = end < r->end ? end : r->end;

	if (from == at && to == end)
		return kp_chunks_read(c, k, r->buf + (at - r->begin), why);
	if (!*scratch)
		*scratch = malloc(scratch_size(r, c));
	if (!*scratch)
		return kp_fail_memory(why, scratch_size(r, c), "a chunk");
	KP_TRY(kp_chunks_read(c, k, *scratch, why));
	memcpy(r->buf + (from - r->begin), *scratch + (from - at), (size_t)(to - from));
	return KPACK_SUCCESS;
}

static kpack_error_t read_chunks(const struct range *r, struct kpackx_error *why)
{
	uint8_t *scratch = NULL;
	struct kp_chunks *c;
	uint64_t last;
	kpack_error_t err;

	KP_TRY(kp_chunks_open(r->archive, r->entry, &c, why));
	last = (r->end - 1) / kp_chunks_size(c);
	err = KPACK_SUCCESS;
	for (uint64_t k = r->begin / kp_chunks_size(c); k <= last && !err; k++)
		err = take_chunk(r, c, k, &scratch, why);
	free(scratch);
	kp_chunks_close(c);
	return err;
}

/* --- frames ----------------------------------------------------------------------- */

static kpack_error_t wrong_size(const struct range *r, bool more,
				struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
		       "frame decodes to %s than its %llu bytes", more ? "more" : "less",
		       (unsigned long long)r->size);
}

/* Decode N bytes into BUF, overwriting it after every CAP bytes. */
static kpack_error_t next_bytes(const struct range *r, struct kp_frames *f, uint8_t *buf,
				size_t cap, uint64_t n, struct kpackx_error *why)
{
	while (n) {
		uint64_t want = n < cap ? n : cap, done = 0;

		KP_TRY(kp_frames_decode(f, buf, want, want, &done, why));
		if (done < want)
			return wrong_size(r, false, why);
		n -= want;
	}
	return KPACK_SUCCESS;
}

/* After the last byte the frames must end; only a checksum may follow. */
static kpack_error_t expect_end(const struct range *r, struct kp_frames *f,
				struct kpackx_error *why)
{
	uint64_t done = 0;
	uint8_t more;

	if (r->end < r->size)
		return KPACK_SUCCESS;
	KP_TRY(kp_frames_decode(f, &more, 1, 1, &done, why));
	return done ? wrong_size(r, true, why) : KPACK_SUCCESS;
}

/*
 * Decode through a window; bytes before the range go to a small buffer and are dropped.
 */
static kpack_error_t read_pieces(const struct range *r, struct kp_frames *f,
				 struct kpackx_error *why)
{
	size_t cap = ZSTD_DStreamOutSize(), n = (size_t)(r->end - r->begin);
	uint8_t *scratch = malloc(cap);
	kpack_error_t err;

	if (!scratch)
		return kp_fail_memory(why, cap, "decoding");
	err = next_bytes(r, f, scratch, cap, r->begin, why);
	free(scratch);
	if (!err)
		err = next_bytes(r, f, r->buf, n, n, why);
	return err ? err : expect_end(r, f, why);
}

/* Decode into one buffer of the entry's size. */
static kpack_error_t read_into(const struct range *r, struct kp_frames *f, uint8_t *whole,
			       struct kpackx_error *why)
{
	uint64_t done = 0;

	KP_TRY(kp_frames_decode(f, whole, r->size, UINT64_MAX, &done, why));
	return done < r->size ? wrong_size(r, false, why) : KPACK_SUCCESS;
}

static kpack_error_t read_whole(const struct range *r, struct kp_frames *f,
				struct kpackx_error *why)
{
	uint8_t *whole;
	kpack_error_t err;

	if (r->begin == 0 && r->end == r->size)
		return read_into(r, f, r->buf, why);
	KP_TRY(kp_archive_check_size(r->archive, r->entry, why));
	whole = kp_large_alloc((size_t)r->size);
	if (!whole)
		return kp_fail_memory(why, r->size, "decoding");
	err = read_into(r, f, whole, why);
	if (!err)
		memcpy(r->buf, whole + r->begin, (size_t)(r->end - r->begin));
	free(whole);
	return err;
}

/* Whether the first frame alone decodes to more than the entry's bytes. */
static kpack_error_t check_first(const struct range *r, const struct kp_source *stored,
				 struct kpackx_error *why)
{
	uint8_t buf[KP_FRAME_HEADER_MAX];
	struct kp_frame_header h;
	struct kp_span head;

	KP_TRY(kp_source_head(stored, 0, buf, sizeof(buf), &head, why));
	if (kp_frame_header_read(head, &h) && h.content != KP_FRAME_SIZE_UNKNOWN &&
	    h.content > r->size)
		return wrong_size(r, true, why);
	return KPACK_SUCCESS; /* decoding will find out */
}

static kpack_error_t decode_frames(const struct range *r, const struct kp_source *stored,
				   enum kp_frames_into into, bool *too_wide,
				   struct kpackx_error *why)
{
	struct kp_frames *f;
	kpack_error_t err;

	KP_TRY(kp_frames_open(stored, into, &f, why));
	kp_frames_narrow_windows(f, r->size);
	err = into == KP_FRAMES_WHOLE ? read_whole(r, f, why) : read_pieces(r, f, why);
	*too_wide = kp_frames_too_wide(f);
	kp_frames_close(f);
	return err;
}

/* Any frame can have too large a window, which only decoding shows: then decode all. */
static kpack_error_t read_frames(const struct range *r, const struct kp_source *stored,
				 struct kpackx_error *why)
{
	bool whole = r->begin == 0 && r->end == r->size, too_wide = false;
	enum kp_frames_into into = whole ? KP_FRAMES_WHOLE : KP_FRAMES_PIECES;
	kpack_error_t err;

	KP_TRY(check_first(r, stored, why));
	err = decode_frames(r, stored, into, &too_wide, why);
	if (too_wide && into == KP_FRAMES_PIECES)
		err = decode_frames(r, stored, KP_FRAMES_WHOLE, &too_wide, why);
	return err;
}

/* --- the call --------------------------------------------------------------------- */

static kpack_error_t read_range(const struct range *r, struct kpackx_error *why)
{
	struct kp_source stored;

	if (kp_archive_decoding_facts(r->archive, r->entry).chunk)
		return read_chunks(r, why);
	KP_TRY(kp_archive_source(r->archive, r->entry, &stored, why));
	if (strcmp(kp_archive_scheme(r->archive), "none") == 0)
		return kp_source_read(&stored, r->begin, r->buf,
				      (size_t)(r->end - r->begin), why);
	return read_frames(r, &stored, why);
}

kpack_error_t kp_archive_read_range(const struct kpack_archive *a, size_t entry,
				    uint64_t offset, void *buf, size_t size, size_t *got,
				    struct kpackx_error *why)
{
	struct kp_entry_info info;
	struct range r;
	uint64_t left;

	kp_archive_entry(a, entry, &info);
	left = offset < info.size ? info.size - offset : 0;
	if (left > size)
		left = size;
	r = (struct range){a, entry, info.size, offset, offset + left, buf};
	if (left)
		KP_TRY(read_range(&r, why));
	*got = (size_t)left;
	return KPACK_SUCCESS;
}
