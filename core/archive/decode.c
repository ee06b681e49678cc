/* SPDX-License-Identifier: MIT */
#include "decode.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include "frame_header.h"
#include "frames.h"
#include "shared.h"
#include "digest.h"

/*
 * Bytes to decode before hashing them, except where that would decode blocks several times:
 * few enough to be still in the processor's cache.
 */
static const uint64_t STEP = 256 << 10;

/* Bytes of an object of a shared archive for which each block is decoded once. */
static const uint64_t SHARED_UNIT = 16 << 20;

static const struct way {
	enum kp_frames_into into;
	bool hash;   /* check the xxh3 */
	bool fast;   /* and then no checksums */
	bool chunks; /* by the seek table */
	bool reused; /* the memory is any, not of the entry's size */
} ways[] = {
	[KP_DECODE_WHOLE] = {KP_FRAMES_WHOLE, .hash = true},
	[KP_DECODE_FAST] = {KP_FRAMES_WHOLE, .hash = true, .fast = true},
	[KP_DECODE_STEPS] = {KP_FRAMES_STEPS, .hash = true, .fast = true, .chunks = true},
	[KP_DECODE_UNITS] = {KP_FRAMES_WHOLE, .hash = true, .chunks = true},
	[KP_DECODE_PIECES] = {KP_FRAMES_PIECES, .hash = true, .reused = true},
	[KP_DECODE_WINDOW] = {KP_FRAMES_PIECES, .hash = true, .fast = true,
			      .reused = true},
	[KP_DECODE_PART] = {KP_FRAMES_PIECES, .reused = true},
};

struct kp_decode {
	const struct kpack_archive *archive;
	size_t entry;
	bool checked; /* when all is decoded, all was compared with its checksums */
	bool reused;
	struct kp_source stored;
	uint64_t size, done; /* of the decoded bytes */
	uint64_t expected;   /* if stored uncompressed: see kp_source_expect */
	uint64_t step;       /* bytes to decode before hashing them */
	uint64_t unit;       /* KP_DECODE_UNITS: bytes to decode at once */
	/* all NULL: the bytes are stored uncompressed */
	const struct kp_shared *shared;
	uint32_t object;
	struct kp_chunks *chunks;
	struct kp_frames *frames;
	struct kp_digest digest;
	struct kp_frames *idle; /* memory for FRAMES, or NULL */
};

/* --- asking ----------------------------------------------------------------------- */

static kpack_error_t read_head(const struct kpack_archive *a, size_t entry,
			       struct kp_source *stored, uint8_t buf[KP_FRAME_HEADER_MAX],
			       struct kp_span *head, struct kpackx_error *why)
{
	kp_archive_expect(a, entry); /* the caller will decode it */
	KP_TRY(kp_archive_source(a, entry, stored, why));
	return kp_source_head(stored, 0, buf, KP_FRAME_HEADER_MAX, head, why);
}

kpack_error_t kp_decode_window(const struct kpack_archive *a, size_t entry,
			       uint64_t *window, struct kpackx_error *why)
{
	uint8_t buf[KP_FRAME_HEADER_MAX];
	struct kp_frame_header h;
	struct kp_source stored;
	struct kp_span head;

	*window = 0;
	if (kp_archive_is_plain(a) || kp_archive_shared(a))
		return KPACK_SUCCESS;
	KP_TRY(read_head(a, entry, &stored, buf, &head, why));
	/* if the header cannot be read, decoding will report it */
	*window = UINT64_C(1) << KP_WINDOW_LOG_USUAL;
	if (kp_frame_header_read(head, &h) && !h.skippable)
		*window = h.window;
	return KPACK_SUCCESS;
}

uint64_t kp_decode_memory(const struct kpack_archive *a, size_t entry)
{
	uint8_t buf[KP_FRAME_HEADER_MAX];
	struct kp_entry_info info;
	struct kp_source stored;
	struct kp_span head;

	if (kp_archive_shared(a))
		return kp_shared_memory(kp_archive_shared(a));
	if (kp_archive_is_plain(a) || read_head(a, entry, &stored, buf, &head, NULL))
		return 0;
	kp_archive_entry(a, entry, &info);
	return kp_frames_memory(head, KP_FRAMES_STEPS, stored.size, info.size);
}

/* --- opening ---------------------------------------------------------------------- */

/*
 * Whether pieces of the entry can be decoded with much less memory than all of its SIZE
 * bytes take: it is stored uncompressed, or as one frame whose window is smaller.
 */
static kpack_error_t is_windowed(const struct kpack_archive *a,
				 const struct kp_source *stored, uint64_t size,
				 bool *windowed, struct kpackx_error *why)
{
	uint8_t buf[KP_FRAME_HEADER_MAX];
	struct kp_frame_header h;
	struct kp_span head;

	*windowed = kp_archive_is_plain(a);
	if (*windowed)
		return KPACK_SUCCESS;
	KP_TRY(kp_source_head(stored, 0, buf, KP_FRAME_HEADER_MAX, &head, why));
	*windowed = kp_frame_header_read(head, &h) && !h.skippable && h.content == size &&
		    h.window <= size / 2 && h.window <= UINT64_C(1) << KP_WINDOW_LOG_MAX;
	return KPACK_SUCCESS;
}

static kpack_error_t open_decode(struct kp_decode *d, const struct kpack_archive *a,
				 size_t entry, enum kp_decode_how how,
				 struct kpackx_error *why)
{
	struct kp_decoding_facts facts = kp_archive_decoding_facts(a, entry);
	const struct way *way = &ways[how];
	enum kp_frames_into into = way->into;
	struct kp_entry_info info;
	uint32_t sum;
	kpack_error_t err = KPACK_SUCCESS;
	/* only a decoder of chunks compares the checksums in a seek table, if there is one */
	bool chunks =
		facts.chunk && (way->chunks || (into == KP_FRAMES_WHOLE && !facts.xxh3 &&
						!kp_archive_has_hashes(a, entry)));

	kp_archive_entry(a, entry, &info);
	d->archive = a;
	d->entry = entry;
	d->checked = way->hash && (!facts.chunk || way->chunks);
	d->size = info.size;
	d->unit = info.size;
	d->reused = way->reused;
	KP_TRY(kp_digest_init(&d->digest, way->hash ? facts.xxh3 : NULL, why));
	d->shared = kp_archive_shared(a);
	d->object = info.ordinal;
	d->step = d->shared && how != KP_DECODE_STEPS ? SHARED_UNIT : STEP;
	if (d->shared) {
		d->reused |= how == KP_DECODE_UNITS;
		if (d->size > SHARED_UNIT)
			d->unit = SHARED_UNIT;
		return KPACK_SUCCESS;
	}
	if (into != KP_FRAMES_WHOLE)
		kp_archive_expect(a, entry);
	KP_TRY(kp_archive_source(a, entry, &d->stored, why));
	if (chunks)
		err = kp_chunks_open(a, entry, &d->chunks, why);
	if (err && (way->chunks || err != KPACK_ERROR_INVALID_FORMAT))
		return err;
	if (d->chunks) {
		d->reused = how == KP_DECODE_UNITS;
		d->unit = kp_chunks_size(d->chunks);
		if (kp_chunks_have_sum(d->chunks, &sum) && !(way->fast && facts.xxh3))
			KP_TRY(kp_digest_want_sum(&d->digest, sum, why));
		return KPACK_SUCCESS;
	}
	if (how == KP_DECODE_UNITS && d->size > STEP) {
		KP_TRY(is_windowed(a, &d->stored, d->size, &d->reused, why));
		if (d->reused) {
			into = KP_FRAMES_PIECES;
			d->unit = STEP;
		}
	}
	if (kp_archive_is_plain(a))
		return KPACK_SUCCESS;
	if (d->idle) {
		d->frames = d->idle;
		d->idle = NULL;
		KP_TRY(kp_frames_reopen(d->frames, &d->stored, into, why));
	} else {
		KP_TRY(kp_frames_open(&d->stored, into, &d->frames, why));
	}
	if (way->fast && d->digest.hash)
		kp_frames_ignore_checksums(d->frames);
	if (how == KP_DECODE_PART)
		kp_frames_narrow_windows(d->frames, d->size);
	return KPACK_SUCCESS;
}

kpack_error_t kp_decode_open(const struct kpack_archive *a, size_t entry,
			     enum kp_decode_how how, struct kp_decode **out,
			     struct kpackx_error *why)
{
	struct kp_decode *d = calloc(1, sizeof(*d));
	kpack_error_t err;

	if (!d)
		return kp_fail_memory(why, sizeof(*d), "decoding");
	err = open_decode(d, a, entry, how, why);
	if (err)
		kp_decode_close(d);
	else
		*out = d;
	return err;
}

uint64_t kp_decode_leave(struct kp_decode *d)
{
	struct kp_frames *idle = d->frames ? d->frames : d->idle;

	kp_chunks_close(d->chunks);
	kp_digest_fini(&d->digest);
	*d = (struct kp_decode){.idle = idle};
	return sizeof(*d) + (idle ? kp_frames_held(idle) : 0);
}

kpack_error_t kp_decode_reopen(struct kp_decode *d, const struct kpack_archive *a,
			       size_t entry, enum kp_decode_how how,
			       struct kpackx_error *why)
{
	return open_decode(d, a, entry, how, why);
}

kpack_error_t kp_decode_limit_window(struct kp_decode *d, uint64_t max,
				     struct kpackx_error *why)
{
	return d->frames ? kp_frames_limit_window(d->frames, max, why) : KPACK_SUCCESS;
}

uint64_t kp_decode_unit(const struct kp_decode *d)
{
	return d->unit;
}

bool kp_decode_too_wide(const struct kp_decode *d)
{
	return d->frames && kp_frames_too_wide(d->frames);
}

void kp_decode_close(struct kp_decode *d)
{
	if (!d)
		return;
	kp_chunks_close(d->chunks);
	kp_frames_close(d->frames);
	kp_frames_close(d->idle);
	kp_digest_fini(&d->digest);
	free(d);
}

/* --- decoding --------------------------------------------------------------------- */

static kpack_error_t next_piece(struct kp_decode *d, uint8_t *buf, uint64_t size,
				struct kpackx_error *why)
{
	uint64_t got = 0, more = 0;
	uint8_t byte;

	KP_TRY(kp_frames_decode(d->frames, buf, size, size, &got, why));
	if (got == size && d->done + size == d->size) /* only a checksum may follow */
		KP_TRY(kp_frames_decode(d->frames, &byte, 1, 1, &more, why));
	if (got < size || more)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "frame decodes to %s than its %llu bytes",
			       more ? "more" : "less", (unsigned long long)d->size);
	d->done += size;
	return KPACK_SUCCESS;
}

/* The last bytes count only when all frames have ended: a checksum may still follow. */
static kpack_error_t next_of_whole(struct kp_decode *d, uint8_t *whole, uint64_t until,
				   struct kpackx_error *why)
{
	if (until < d->size)
		KP_TRY(kp_frames_decode(d->frames, whole, d->size, until, &d->done, why));
	if (until == d->size || d->done == d->size)
		KP_TRY(kp_frames_decode(d->frames, whole, d->size, UINT64_MAX, &d->done,
					why));
	if (d->done < until)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "frame decodes to %llu bytes instead of %llu",
			       (unsigned long long)d->done, (unsigned long long)d->size);
	return KPACK_SUCCESS;
}

static kpack_error_t next_chunk(struct kp_decode *d, uint8_t *buf,
				struct kpackx_error *why)
{
	uint64_t chunk = kp_chunks_size(d->chunks), left = d->size - d->done;

	if (!left && d->size)
		return KPACK_SUCCESS; /* an empty entry has a chunk */
	KP_TRY(kp_chunks_read(d->chunks, d->done / chunk, buf, why));
	d->done += left < chunk ? left : chunk;
	return KPACK_SUCCESS;
}

/*
 * Decode SIZE bytes, which are left, or more, to AT; BUF as for kp_decode_next.
 */
static kpack_error_t advance_decode(struct kp_decode *d, uint8_t *buf, uint8_t *at,
				    uint64_t size, struct kpackx_error *why)
{
	if (d->chunks)
		return next_chunk(d, at, why);
	if (d->frames && d->reused)
		return next_piece(d, at, size, why);
	if (d->frames)
		return next_of_whole(d, buf, d->done + size, why);
	if (d->shared) {
		KP_TRY(kp_shared_read(d->shared, d->object, d->done, at, size, why));
	} else {
		if (size < d->size - d->done)
			kp_source_expect(&d->stored, d->done, &d->expected);
		KP_TRY(kp_source_read(&d->stored, d->done, at, (size_t)size, why));
	}
	d->done += size;
	return KPACK_SUCCESS;
}

kpack_error_t kp_decode_next(struct kp_decode *d, void *buf, uint64_t size,
			     uint64_t *done, struct kpackx_error *why)
{
	uint64_t left = d->size - d->done, until = d->done + (size < left ? size : left);
	uint64_t first = d->reused ? d->done : 0; /* its byte is at BUF */

	do {
		uint64_t before = d->done, n = until - before;
		uint8_t *at = (uint8_t *)buf + (before - first);

		if (d->digest.hash && n > d->step)
			n = d->step;
		KP_TRY(advance_decode(d, buf, at, n, why));
		kp_digest_add(&d->digest, at, (size_t)(d->done - before));
	} while (d->done < until);
	if (d->done == d->size) {
		KP_TRY(kp_digest_check(&d->digest, why));
		if (d->checked && d->size > KP_WHOLE_MAX)
			kp_archive_set_checked(d->archive, d->entry);
	}
	*done = d->done;
	return KPACK_SUCCESS;
}

/* --- whole entries ---------------------------------------------------------------- */

static kpack_error_t read_entry(const struct kpack_archive *a, size_t entry,
				enum kp_decode_how how, void *buf,
				struct kpackx_error *why)
{
	struct kp_decode *d;
	uint64_t done;
	kpack_error_t err;

	KP_TRY(kp_decode_open(a, entry, how, &d, why));
	err = kp_decode_next(d, buf, UINT64_MAX, &done, why);
	kp_decode_close(d);
	return err;
}

kpack_error_t kp_archive_read(const struct kpack_archive *a, size_t entry, void *buf,
			      struct kpackx_error *why)
{
	return read_entry(a, entry, KP_DECODE_WHOLE, buf, why);
}

kpack_error_t kp_archive_read_fast(const struct kpack_archive *a, size_t entry, void *buf,
				   struct kpackx_error *why)
{
	return read_entry(a, entry, KP_DECODE_FAST, buf, why);
}
