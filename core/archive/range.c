/* SPDX-License-Identifier: MIT */
/* Reading a part of an entry without holding the rest in memory. */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "decode.h"
#include "codec.h"
#include "shared.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"

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

/*
 * Decode through a window; bytes before the range go to a small buffer and are dropped.
 */
static kpack_error_t read_part(const struct range *r, struct kp_decode *d,
			       struct kpackx_error *why)
{
	size_t cap = ZSTD_DStreamOutSize();
	uint8_t *scratch = malloc(cap);
	kpack_error_t err = KPACK_SUCCESS;
	uint64_t done = 0;

	if (!scratch)
		return kp_fail_memory(why, cap, "decoding");
	while (!err && done < r->begin)
		err = kp_decode_next(d, scratch,
				     r->begin - done < cap ? r->begin - done : cap, &done,
				     why);
	free(scratch);
	return err ? err : kp_decode_next(d, r->buf, r->end - r->begin, &done, why);
}

/* Decode the whole entry, whose checksums are then compared, and copy the range. */
static kpack_error_t read_whole(const struct range *r, struct kpackx_error *why)
{
	bool all = r->begin == 0 && r->end == r->size;
	uint8_t *buf = r->buf;
	kpack_error_t err;

	KP_TRY(kp_archive_check_size(r->archive, r->entry, why));
	if (!all)
		buf = kp_large_alloc((size_t)r->size);
	if (!buf)
		return kp_fail_memory(why, r->size, "decoding");
	err = kp_archive_read_fast(r->archive, r->entry, buf, why);
	if (!err && !all)
		memcpy(r->buf, buf + r->begin, (size_t)(r->end - r->begin));
	if (!all)
		free(buf);
	return err;
}

/* Whether the first frame alone decodes to more than the entry's bytes. */
static kpack_error_t check_first(const struct range *r, struct kpackx_error *why)
{
	uint8_t buf[KP_FRAME_HEADER_MAX];
	struct kp_source stored;
	struct kp_span head;
	uint64_t stated;

	KP_TRY(kp_archive_source(r->archive, r->entry, &stored, why));
	KP_TRY(kp_source_head(&stored, 0, buf, sizeof(buf), &head, why));
	if (kp_zstd_content_size(head, &stated) && stated > r->size)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "frame decodes to more than its %llu bytes",
			       (unsigned long long)r->size);
	return KPACK_SUCCESS; /* decoding will find out */
}

/* Any frame can have too large a window, which only decoding shows: then decode all. */
static kpack_error_t read_frames(const struct range *r, struct kpackx_error *why)
{
	struct kp_decode *d;
	kpack_error_t err;
	bool too_wide;

	KP_TRY(check_first(r, why));
	KP_TRY(kp_decode_open(r->archive, r->entry, KP_DECODE_PART, &d, why));
	err = read_part(r, d, why);
	too_wide = kp_decode_too_wide(d);
	kp_decode_close(d);
	return too_wide ? read_whole(r, why) : err;
}

/* --- the call --------------------------------------------------------------------- */

static kpack_error_t read_range(const struct range *r, struct kpackx_error *why)
{
	const struct kp_shared *shared = kp_archive_shared(r->archive);
	struct kp_entry_info info;
	struct kp_source stored;

	if ((r->begin == 0 && r->end == r->size) ||
	    (r->size <= KP_WHOLE_MAX && !kp_archive_has_parts(r->archive, r->entry)))
		return read_whole(r, why);
	KP_TRY(kp_archive_check_parts(r->archive, r->entry, UINT64_MAX, why));
	if (shared) {
		kp_archive_entry(r->archive, r->entry, &info);
		return kp_shared_read(shared, info.ordinal, r->begin, r->buf,
				      r->end - r->begin, why);
	}
	if (kp_archive_decoding_facts(r->archive, r->entry).chunk)
		return read_chunks(r, why);
	if (!kp_archive_is_plain(r->archive))
		return read_frames(r, why);
	KP_TRY(kp_archive_source(r->archive, r->entry, &stored, why));
	return kp_source_read(&stored, r->begin, r->buf, (size_t)(r->end - r->begin),
			      why);
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
