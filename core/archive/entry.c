/* SPDX-License-Identifier: MIT */
/*
 * Each entry is stored in one of four ways, which is found out once, when a reader is opened:
 *
 *   plain    the bytes themselves
 *   frames   one zstd frame or several, decoded in order
 *   chunks   frames with a seek table (chunks.h): parts that decode alone.  A reader that
 *            wants all bytes in order ignores the table and reads frames, unless only the
 *            table has checksums.
 *   blocks   extents of blocks that objects share (shared.h)
 *
 * What is read from the first byte to the last is hashed on the way and compared with the
 * xxh3 of the metadata.  Whoever reads a part first calls kp_entry_check_parts.
 *
 * What is compared, and where:
 *
 *   hashes of pieces    in kp_source_read, of the stored bytes of plain entries and frames
 *   hashes of frames    in blocks.c, of a shared archive
 *   zstd's checksums    by zstd, unless there is an xxh3, which covers more
 *   a seek table's      in chunks.c, for a chunk; the checksum of one frame in parts covers
 *                       all of them and is compared here, after the last one
 *   the xxh3            here, after the last byte; KP_READ_VERIFY compares all of these
 *
 * A large entry whose bytes all passed is remembered as checked, so that parts of it may be
 * given away from then on without decoding it again.
 */
#include "entry.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <xxhash.h>
#include <zstd.h>
#include "chunks.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/hash.h"
#include "core/base/order.h"
#include "frames.h"
#include "internal.h"

/*
 * Bytes to decode before hashing them, except where that would decode blocks several times:
 * few enough to be still in the processor's cache.
 */
static const uint64_t STEP = 256 << 10;

/* Bytes of an object of a shared archive for which each block is decoded once. */
static const uint64_t SHARED_UNIT = 16 << 20;

static const char DIFFERS[] = "content does not match its xxh3";

struct kp_reader {
	const struct kpack_archive *archive;
	size_t entry;
	const struct way *way;
	enum kp_read_how how;
	struct kp_source stored; /* not of blocks */
	uint64_t size, done;     /* of the decoded bytes */
	uint64_t step;           /* bytes to decode before hashing them */
	uint64_t unit;
	bool reused;       /* the memory is any, not of the entry's size */
	bool proves;       /* when all is decoded, all was compared with its checksums */
	uint64_t expected; /* if plain: see kp_source_expect */
	uint32_t object;   /* in blocks */
	struct kp_chunks chunks;
	struct kp_frames *frames;
	struct kp_frames *idle; /* memory for FRAMES, or NULL */
	/* what the decoded bytes must have; NULL: nothing */
	struct kp_hasher *hash;
	const uint8_t *want;
	XXH64_state_t *sum; /* the checksum of the frame whose parts the chunks are */
};

/* --- the ways in which bytes are stored ---------------------------------------------- */

struct way {
	/*
	 * Decode SIZE bytes, which are left, or more, to AT; adds them to R->done.  NULL: the
	 * next bytes are decoded as any other part.
	 */
	kpack_error_t (*next)(struct kp_reader *r, uint8_t *at, uint64_t size,
			      struct kpackx_error *why);
	/* Decode SIZE bytes from OFFSET on. */
	kpack_error_t (*part)(struct kp_reader *r, uint64_t offset, uint8_t *buf,
			      uint64_t size, struct kpackx_error *why);
};

/* Who reads on has the system read ahead; a part that is read alone needs no more. */
static kpack_error_t plain_part(struct kp_reader *r, uint64_t offset, uint8_t *buf,
				uint64_t size, struct kpackx_error *why)
{
	if (r->how != KP_READ_PARTS && size < r->size - offset)
		kp_source_expect(&r->stored, offset, &r->expected);
	return kp_source_read(&r->stored, offset, buf, (size_t)size, why);
}

static kpack_error_t blocks_part(struct kp_reader *r, uint64_t offset, uint8_t *buf,
				 uint64_t size, struct kpackx_error *why)
{
	return kp_shared_read(r->archive->shared, r->object, offset, buf, size, why);
}

static kpack_error_t chunks_next(struct kp_reader *r, uint8_t *at, uint64_t size,
				 struct kpackx_error *why)
{
	uint64_t k = r->done / r->chunks.chunk;

	(void)size;
	if (r->done == r->size && r->size)
		return KPACK_SUCCESS; /* an empty entry has a chunk */
	KP_TRY(kp_chunks_read(&r->chunks, k, at, why));
	r->done += kp_chunk_size(&r->chunks, k);
	return KPACK_SUCCESS;
}

static kpack_error_t chunks_part(struct kp_reader *r, uint64_t offset, uint8_t *buf,
				 uint64_t size, struct kpackx_error *why)
{
	KP_AUTO_FREE uint8_t *scratch = NULL;
	uint64_t chunk = r->chunks.chunk;

	for (uint64_t at = offset, end = offset + size; at < end;) {
		uint64_t k = at / chunk, skip = at % chunk;
		uint64_t n = kp_chunk_size(&r->chunks, k) - skip;

		if (!skip && n <= end - at) {
			KP_TRY(kp_chunks_read(&r->chunks, k, buf + (at - offset), why));
		} else {
			if (!scratch)
				KP_TRY(kp_new(&scratch,
					      (size_t)(r->size < chunk ? r->size : chunk),
					      "a chunk", why));
			KP_TRY(kp_chunks_read(&r->chunks, k, scratch, why));
			n = n < end - at ? n : end - at;
			memcpy(buf + (at - offset), scratch + skip, (size_t)n);
		}
		at += n;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t frames_next(struct kp_reader *r, uint8_t *at, uint64_t size,
				 struct kpackx_error *why)
{
	uint64_t until = r->done + size, got = 0, more = 0;
	uint8_t byte, *whole;

	/* through a window, of which only these bytes are copied: nothing shows what follows them */
	if (r->reused) {
		KP_TRY(kp_frames_decode(r->frames, at, size, size, &got, why));
		if (got == size && until == r->size) /* only a checksum may follow */
			KP_TRY(kp_frames_decode(r->frames, &byte, 1, 1, &more, why));
		if (got < size || more)
			return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
				       "frame decodes to %s than its %llu bytes",
				       more ? "more" : "less",
				       (unsigned long long)r->size);
		r->done = until;
		return KPACK_SUCCESS;
	}
	/* The last bytes count only when all frames have ended: a checksum may still follow. */
	whole = at - r->done;
	if (until < r->size)
		KP_TRY(kp_frames_decode(r->frames, whole, r->size, until, &r->done, why));
	if (until == r->size || r->done == r->size)
		KP_TRY(kp_frames_decode(r->frames, whole, r->size, UINT64_MAX, &r->done,
					why));
	if (r->done < until)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "frame decodes to %llu bytes instead of %llu",
			       (unsigned long long)r->done, (unsigned long long)r->size);
	return KPACK_SUCCESS;
}

/* Decode through a window from where R is; the bytes before the part are dropped. */
static kpack_error_t frames_part(struct kp_reader *r, uint64_t offset, uint8_t *buf,
				 uint64_t size, struct kpackx_error *why)
{
	KP_AUTO_FREE uint8_t *scratch = NULL;
	uint64_t cap = ZSTD_DStreamOutSize();

	if (offset > r->done)
		KP_TRY(kp_new(&scratch, cap, "decoding", why));
	while (r->done < offset) {
		uint64_t n = offset - r->done < cap ? offset - r->done : cap;

		KP_TRY(frames_next(r, scratch, n, why));
	}
	return frames_next(r, buf, size, why);
}

static const struct way ways[] = {
	[KP_FORM_PLAIN] = {NULL, plain_part},
	[KP_FORM_FRAMES] = {frames_next, frames_part},
	[KP_FORM_CHUNKS] = {chunks_next, chunks_part},
	[KP_FORM_BLOCKS] = {NULL, blocks_part},
};

enum kp_form kp_entry_form(const struct kpack_archive *a, size_t entry, uint64_t *unit)
{
	*unit = a->shared ? a->shared->block_size
			  : kp_archive_decoding_facts(a, entry).chunk;
	if (a->toc.scheme == KPACK_COMPRESSION_NOOP)
		return KP_FORM_PLAIN;
	return a->shared ? KP_FORM_BLOCKS : *unit ? KP_FORM_CHUNKS : KP_FORM_FRAMES;
}

static bool has_frames(const struct kpack_archive *a)
{
	return a->toc.scheme == KPACK_COMPRESSION_ZSTD_PER_KERNEL;
}

/* --- stored bytes ---------------------------------------------------------------------- */

/* The hashes of an object's pieces; NULL: it has none. */
static const uint8_t *hashes_of(const struct kpack_archive *a, uint32_t ordinal)
{
	const struct kp_hashed probe = {.ordinal = ordinal};
	const struct kp_hashed *found = kp_find(a->hashed, a->n_hashed, &probe,
						KP_BY_NUMBER(struct kp_hashed, ordinal));

	return found ? a->toc.piece_hashes.data + found->at : NULL;
}

bool kp_entry_has_hashes(const struct kpack_archive *a, size_t entry)
{
	return a->shared ? a->shared->hashes != NULL
			 : hashes_of(a, a->toc.entries[entry].ordinal) != NULL;
}

kpack_error_t kp_archive_source(const struct kpack_archive *a, uint32_t ordinal,
				struct kp_source *out, struct kpackx_error *why)
{
	struct kp_toc_blob at = kp_stored_place(a, ordinal);
	uint8_t word[4];

	if (a->shared)
		return kp_fail(
			why, KPACK_ERROR_NOT_IMPLEMENTED,
			"an object of the scheme %s has no stored bytes of its own",
			kp_scheme_name(a->toc.scheme));
	*out = kp_source_fd(a->fd, at.offset, at.size);
	out->hashes = hashes_of(a, ordinal);
	out->begin = at.offset;
	out->end = at.offset + at.size;
	if (!has_frames(a) || !a->toc.frame_index.data)
		return KPACK_SUCCESS;
	KP_TRY(kp_file_pread(a->fd, at.offset - 4, word, sizeof(word), why));
	if (kp_le32(word) != at.size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "frame_index: %llu bytes for frame %u, the blob says %u",
			       (unsigned long long)at.size, ordinal, kp_le32(word));
	return KPACK_SUCCESS;
}

kpack_error_t kp_archive_check_stored(const struct kpack_archive *a, uint32_t ordinal,
				      struct kpackx_error *why)
{
	KP_AUTO_FREE uint8_t *buf = NULL;
	struct kp_source s;

	KP_TRY(kp_archive_source(a, ordinal, &s, why));
	if (!s.hashes)
		return KPACK_SUCCESS;
	KP_TRY(kp_new(&buf, KP_PIECE, "reading", why));
	for (uint64_t at = 0; at < s.size; at += KP_PIECE)
		KP_TRY(kp_source_read(
			&s, at, buf,
			s.size - at < KP_PIECE ? (size_t)(s.size - at) : KP_PIECE, why));
	return KPACK_SUCCESS;
}

/*
 * The stored bytes are about to be read from their start, in steps: as kp_source_expect.  Not
 * for bytes that are read in one step, which the system then reads in larger pages.
 */
static void expect_stored(const struct kpack_archive *a, size_t entry)
{
	struct kp_toc_blob at = kp_stored_place(a, a->toc.entries[entry].ordinal);
	struct kp_source s = kp_source_fd(a->fd, at.offset, at.size);
	uint64_t end = 0;

	kp_source_expect(&s, 0, &end);
}

/* The stored bytes of an entry that is in frames, and the first frame's header. */
static kpack_error_t read_head(const struct kpack_archive *a, size_t entry,
			       struct kp_source *stored, uint8_t buf[KP_FRAME_HEADER_MAX],
			       struct kp_span *head, struct kpackx_error *why)
{
	KP_TRY(kp_archive_source(a, a->toc.entries[entry].ordinal, stored, why));
	return kp_source_head(stored, 0, buf, KP_FRAME_HEADER_MAX, head, why);
}

kpack_error_t kp_entry_window(const struct kpack_archive *a, size_t entry,
			      uint64_t *window, struct kpackx_error *why)
{
	uint8_t buf[KP_FRAME_HEADER_MAX];
	struct kp_frame_header h;
	struct kp_source stored;
	struct kp_span head;

	*window = 0;
	if (!has_frames(a))
		return KPACK_SUCCESS;
	expect_stored(a, entry); /* the caller will decode it */
	KP_TRY(read_head(a, entry, &stored, buf, &head, why));
	/* if the header cannot be read, decoding will report it */
	*window = UINT64_C(1) << KP_WINDOW_LOG_USUAL;
	if (kp_frame_header_read(head, &h) && !h.skippable)
		*window = h.window;
	return KPACK_SUCCESS;
}

uint64_t kp_entry_memory(const struct kpack_archive *a, size_t entry)
{
	uint8_t buf[KP_FRAME_HEADER_MAX];
	struct kp_source stored;
	struct kp_span head;

	if (a->shared)
		return kp_shared_memory(a->shared);
	if (!has_frames(a))
		return 0;
	expect_stored(a, entry); /* the caller will decode it */
	if (read_head(a, entry, &stored, buf, &head, NULL))
		return 0;
	return kp_frames_memory(head, KP_FRAMES_STEPS, stored.size,
				a->toc.entries[entry].size);
}

uint64_t kp_entry_visits(const struct kpack_archive *a, size_t entry, uint64_t offset,
			 uint64_t size)
{
	return kp_shared_visits(a->shared, a->toc.entries[entry].ordinal, offset, size);
}

/* --- is the size true? ----------------------------------------------------------------- */

/*
 * A table can state gigabytes for a frame of some bytes, as long as zstd could have compressed them
 * so well, and callers are about to allocate them.  So the frames are asked first, without
 * decoding them.
 */
kpack_error_t kp_entry_check_size(const struct kpack_archive *a, size_t entry,
				  struct kpackx_error *why)
{
	uint64_t size = a->toc.entries[entry].size, sum = 0, at = 0, frame;
	uint8_t head[KP_FRAME_HEADER_MAX];
	struct kp_frame_header h;
	struct kp_source stored;
	struct kp_window w;
	size_t n;

	if (!has_frames(a))
		return KPACK_SUCCESS; /* opening the archive compared the sizes */
	KP_TRY(kp_archive_source(a, a->toc.entries[entry].ordinal, &stored, why));
	n = stored.size < sizeof(head) ? (size_t)stored.size : sizeof(head);
	KP_TRY(kp_source_read(&stored, 0, head, n, why));
	if (!kp_frame_header_read((struct kp_span){head, n}, &h) ||
	    h.content == KP_FRAME_SIZE_UNKNOWN)
		return KPACK_SUCCESS; /* decoding will find out */
	/* the first frame is as large as all of them should be, or larger; or add up all headers */
	if (!h.skippable && h.content >= size) {
		sum = h.content;
		at = stored.size;
	}
	kp_window_init(&w, &stored);
	for (; at < stored.size; at += frame) {
		kpack_error_t err = kp_frame_measure(&w, at, &h, &frame, why);

		if (err == KPACK_ERROR_IO_ERROR)
			return err;
		if (err || frame > stored.size - at)
			return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
				       "frame: corrupt, or cut short");
		if (h.skippable)
			continue;
		if (h.content == KP_FRAME_SIZE_UNKNOWN)
			return KPACK_SUCCESS; /* decoding will find out */
		sum = h.content > UINT64_MAX - sum ? UINT64_MAX : sum + h.content;
	}
	if (sum == size)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
		       "frame decodes to %llu bytes instead of %llu",
		       (unsigned long long)sum, (unsigned long long)size);
}

/* --- readers --------------------------------------------------------------------------- */

static kpack_error_t open_frames(struct kp_reader *r, enum kp_frames_into into,
				 struct kpackx_error *why)
{
	uint8_t buf[KP_FRAME_HEADER_MAX];
	struct kp_frame_header h;
	struct kp_span head;

	if (r->how == KP_READ_VERIFY || r->how == KP_READ_PARTS) {
		KP_TRY(kp_source_head(&r->stored, 0, buf, sizeof(buf), &head, why));
		if (!kp_frame_header_read(head, &h) || h.skippable)
			h = (struct kp_frame_header){.content = KP_FRAME_SIZE_UNKNOWN};
		/* a reader of parts does not come to the end, where that shows */
		if (r->how == KP_READ_PARTS && h.content > r->size &&
		    h.content != KP_FRAME_SIZE_UNKNOWN)
			return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
				       "frame decodes to more than its %llu bytes",
				       (unsigned long long)r->size);
		/* the entry is one frame, whose window takes much less memory than all of it */
		if (h.content == r->size && r->size > STEP && h.window <= r->size / 2 &&
		    h.window <= UINT64_C(1) << KP_WINDOW_LOG_MAX)
			into = KP_FRAMES_PIECES;
	}
	r->reused = into == KP_FRAMES_PIECES;
	if (r->reused && r->size > STEP)
		r->unit = STEP;
	r->frames = r->idle;
	r->idle = NULL;
	KP_TRY(kp_frames_open(&r->frames, &r->stored, into, why));
	/* the xxh3 covers more: nothing is hashed twice */
	if (r->hash && r->how != KP_READ_VERIFY)
		kp_frames_ignore_checksums(r->frames);
	if (into == KP_FRAMES_PIECES)
		kp_frames_narrow_windows(r->frames, r->size);
	return KPACK_SUCCESS;
}

kpack_error_t kp_reader_reopen(struct kp_reader *r, const struct kpack_archive *a,
			       size_t entry, enum kp_read_how how,
			       struct kpackx_error *why)
{
	static const enum kp_frames_into into[] = {
		[KP_READ_WHOLE] = KP_FRAMES_WHOLE,   [KP_READ_STEPS] = KP_FRAMES_STEPS,
		[KP_READ_PIECES] = KP_FRAMES_PIECES, [KP_READ_VERIFY] = KP_FRAMES_WHOLE,
		[KP_READ_PARTS] = KP_FRAMES_PIECES,
	};
	const uint8_t *xxh3 = kp_archive_decoding_facts(a, entry).xxh3;
	const struct kp_toc_entry *e = &a->toc.entries[entry];
	bool by_table = how == KP_READ_VERIFY || how == KP_READ_PARTS;
	uint64_t unit;
	enum kp_form form = kp_entry_form(a, entry, &unit);
	kpack_error_t err;

	*r = (struct kp_reader){.idle = r->idle,
				.archive = a,
				.entry = entry,
				.how = how,
				.size = e->size,
				.unit = e->size,
				.step = STEP,
				.object = e->ordinal,
				.proves = how != KP_READ_PARTS,
				.reused = how == KP_READ_PIECES};
	r->way = &ways[form];
	if (xxh3 && how != KP_READ_PARTS) {
		r->want = xxh3;
		r->hash = kp_hasher_new();
		if (!r->hash)
			return kp_fail_memory(why, 0, "hashing");
	}
	if (form == KP_FORM_BLOCKS) {
		/* in long steps: a block may be needed at several places of an object */
		r->reused |= by_table;
		if (how != KP_READ_STEPS)
			r->step = SHARED_UNIT;
		if (r->size > SHARED_UNIT)
			r->unit = SHARED_UNIT;
		return KPACK_SUCCESS;
	}
	if (into[how] != KP_FRAMES_WHOLE &&
	    (how != KP_READ_PARTS || form == KP_FORM_FRAMES))
		expect_stored(a, entry);
	KP_TRY(kp_archive_source(a, e->ordinal, &r->stored, why));
	if (form == KP_FORM_PLAIN) {
		r->reused |= by_table;
		if (r->reused && r->size > STEP)
			r->unit = STEP;
		return KPACK_SUCCESS;
	}
	/* only a reader of chunks compares the checksums in a seek table, if there is one */
	if (form == KP_FORM_CHUNKS &&
	    (by_table || (how != KP_READ_PIECES && !xxh3 && !r->stored.hashes))) {
		err = kp_chunks_open(&r->chunks, &r->stored, unit, r->size, why);
		if (!err) {
			r->reused = by_table;
			r->unit = unit;
			if (r->chunks.footer && how != KP_READ_PARTS) {
				r->sum = XXH64_createState();
				if (!r->sum)
					return kp_fail_memory(why, 0, "hashing");
				XXH64_reset(r->sum, 0);
			}
			return KPACK_SUCCESS;
		}
		if (by_table || err != KPACK_ERROR_INVALID_FORMAT)
			return err;
		kp_chunks_fini(&r->chunks);
	}
	/* the checksums of a seek table, if there are any, are not compared then */
	r->way = &ways[KP_FORM_FRAMES];
	r->proves &= form != KP_FORM_CHUNKS;
	return open_frames(r, into[how], why);
}

kpack_error_t kp_reader_open(const struct kpack_archive *a, size_t entry,
			     enum kp_read_how how, struct kp_reader **out,
			     struct kpackx_error *why)
{
	struct kp_reader *r;
	kpack_error_t err;

	KP_TRY(kp_new(&r, 1, "decoding", why));
	err = kp_reader_reopen(r, a, entry, how, why);
	if (err)
		kp_reader_close(r);
	else
		*out = r;
	return err;
}

uint64_t kp_reader_leave(struct kp_reader *r)
{
	struct kp_frames *idle = r->frames ? r->frames : r->idle;

	kp_chunks_fini(&r->chunks);
	kp_hasher_free(r->hash);
	XXH64_freeState(r->sum);
	*r = (struct kp_reader){.idle = idle};
	return sizeof(*r) + (idle ? kp_frames_held(idle) : 0);
}

void kp_reader_close(struct kp_reader *r)
{
	if (!r)
		return;
	kp_reader_leave(r);
	kp_frames_close(r->idle);
	free(r);
}

uint64_t kp_reader_unit(const struct kp_reader *r)
{
	return r->unit;
}

uint64_t kp_reader_chunks(const struct kp_reader *r)
{
	return r->chunks.n;
}

void kp_reader_limit_window(struct kp_reader *r, uint64_t max)
{
	if (r->frames)
		kp_frames_limit_window(r->frames, max);
}

bool kp_reader_too_wide(const struct kp_reader *r)
{
	return r->frames && kp_frames_too_wide(r->frames);
}

kpack_error_t kp_reader_at(struct kp_reader *r, uint64_t offset, void *buf, uint64_t size,
			   struct kpackx_error *why)
{
	return r->way->part(r, offset, buf, size, why);
}

static void set_checked(const struct kpack_archive *a, size_t entry)
{
	atomic_fetch_or(&a->checked[entry / 8], (uint8_t)(1u << entry % 8));
}

kpack_error_t kp_reader_next(struct kp_reader *r, void *buf, uint64_t size,
			     uint64_t *done, struct kpackx_error *why)
{
	uint64_t left = r->size - r->done, until = r->done + (size < left ? size : left);
	uint64_t first = r->reused ? r->done : 0; /* its byte is at BUF */
	struct kp_hash have;

	do {
		uint64_t before = r->done, n = until - before;
		uint8_t *at = (uint8_t *)buf + (before - first);

		if (r->hash && n > r->step)
			n = r->step;
		if (r->way->next) {
			KP_TRY(r->way->next(r, at, n, why));
		} else {
			KP_TRY(r->way->part(r, before, at, n, why));
			r->done += n;
		}
		if (r->hash)
			kp_hasher_add(r->hash, at, (size_t)(r->done - before));
		if (r->sum)
			XXH64_update(r->sum, at, (size_t)(r->done - before));
	} while (r->done < until);
	*done = r->done;
	if (r->done < r->size)
		return KPACK_SUCCESS;
	if (r->sum && (uint32_t)XXH64_digest(r->sum) != r->chunks.sum)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "content does not match the checksum of its frame");
	if (r->hash) {
		have = kp_hasher_value(r->hash);
		if (!kp_hash_is(&have, r->want))
			return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED, "%s",
				       DIFFERS);
	}
	if (r->proves && r->size > KP_WHOLE_MAX)
		set_checked(r->archive, r->entry);
	return KPACK_SUCCESS;
}

bool kp_entry_differs(const struct kpackx_error *why)
{
	return why->code == KPACK_ERROR_DECOMPRESSION_FAILED &&
	       strcmp(why->text, DIFFERS) == 0;
}

/* --- parts that may be given away ------------------------------------------------------ */

bool kp_entry_has_parts(const struct kpack_archive *a, size_t entry)
{
	uint8_t buf[KP_FRAME_HEADER_MAX];
	struct kp_decoding_facts facts;
	struct kp_frame_header h;
	struct kp_source stored;
	struct kp_span head;

	if (kp_entry_has_hashes(a, entry) ||
	    (atomic_load_explicit(&a->checked[entry / 8], memory_order_relaxed) &
	     1u << entry % 8))
		return true;
	facts = kp_archive_decoding_facts(a, entry);
	if (facts.xxh3)
		return false;
	/*
	 * A block of a shared archive has a checksum of its own.  So has a chunk that is a frame;
	 * that of one frame in parts covers more, and if in doubt, a checksum does.
	 */
	if (has_frames(a)) {
		if (read_head(a, entry, &stored, buf, &head, NULL) ||
		    !kp_frame_header_read(head, &h))
			return false;
		if (h.content == a->toc.entries[entry].size ? h.checksum : !facts.chunk)
			return false;
	}
	set_checked(a, entry);
	return true;
}

kpack_error_t kp_entry_check_parts(const struct kpack_archive *a, size_t entry,
				   uint64_t most, struct kpackx_error *why)
{
	bool by_unit = a->shared || kp_archive_decoding_facts(a, entry).chunk;
	enum kp_read_how how = by_unit ? KP_READ_VERIFY : KP_READ_PIECES;
	uint64_t size = a->toc.entries[entry].size;

	if (kp_entry_has_parts(a, entry))
		return KPACK_SUCCESS;
	KP_TRY(kp_entry_check_size(a, entry, why));
	for (;;) {
		KP_AUTO_FREE uint8_t *buf = NULL;
		struct kp_reader *r;
		kpack_error_t err;
		bool too_wide;

		KP_TRY(kp_reader_open(a, entry, how, &r, why));
		buf = malloc(r->unit + 1);
		err = buf ? KPACK_SUCCESS : kp_fail_memory(why, r->unit, "decoding");
		if (!err && most < UINT64_C(1) << KP_WINDOW_LOG_MAX &&
		    how == KP_READ_PIECES)
			kp_reader_limit_window(r, most);
		for (uint64_t done = 0; !err && done < size;)
			err = kp_reader_next(r, buf, r->unit, &done, why);
		too_wide = kp_reader_too_wide(r);
		kp_reader_close(r);
		if (!err)
			set_checked(a, entry); /* small ones, too */
		if (!too_wide || size > most || how == KP_READ_WHOLE)
			return err;
		/* the window is as wide as few entries are large: hold all of this one */
		how = KP_READ_WHOLE;
	}
}

/* --- in one call ----------------------------------------------------------------------- */

kpack_error_t kp_entry_read(const struct kpack_archive *a, size_t entry, void *buf,
			    struct kpackx_error *why)
{
	struct kp_reader *r;
	uint64_t done;
	kpack_error_t err;

	KP_TRY(kp_reader_open(a, entry, KP_READ_WHOLE, &r, why));
	err = kp_reader_next(r, buf, UINT64_MAX, &done, why);
	kp_reader_close(r);
	return err;
}

kpack_error_t kp_entry_read_range(const struct kpack_archive *a, size_t entry,
				  uint64_t offset, void *buf, size_t size, size_t *got,
				  struct kpackx_error *why)
{
	uint64_t all = a->toc.entries[entry].size, left = offset < all ? all - offset : 0;
	size_t n = left < size ? (size_t)left : size;
	KP_AUTO_FREE uint8_t *whole = NULL;
	struct kp_reader *r;
	kpack_error_t err;
	bool too_wide = true;

	/* all is compared while it is decoded; of a part, all must have been decoded once */
	if (n == all) {
		if (n)
			KP_TRY(kp_entry_read(a, entry, buf, why));
		too_wide = false;
	} else if (n && (all > KP_WHOLE_MAX || kp_entry_has_parts(a, entry))) {
		KP_TRY(kp_entry_check_parts(a, entry, UINT64_MAX, why));
		KP_TRY(kp_reader_open(a, entry, KP_READ_PARTS, &r, why));
		err = kp_reader_at(r, offset, buf, n, why);
		too_wide = kp_reader_too_wide(r);
		kp_reader_close(r);
		if (!too_wide)
			KP_TRY(err);
	}
	/* small, or with a window that takes as much memory as the entry */
	if (n && too_wide) {
		KP_TRY(kp_entry_check_size(a, entry, why));
		whole = kp_large_alloc((size_t)all);
		if (!whole)
			return kp_fail_memory(why, all, "decoding");
		KP_TRY(kp_entry_read(a, entry, whole, why));
		memcpy(buf, whole + offset, n);
	}
	*got = n;
	return KPACK_SUCCESS;
}
