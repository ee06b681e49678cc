/* SPDX-License-Identifier: MIT */
/*
 * Decoding an entry from its first byte to its last.  There may be any time between two
 * calls.  One thread at a time.
 */
#ifndef KP_CORE_ARCHIVE_DECODE_H
#define KP_CORE_ARCHIVE_DECODE_H

#include "archive.h"

struct kp_decode;

enum kp_decode_how {
	/* into one buffer of the entry's size */
	KP_DECODE_WHOLE, /* checks all checksums of frames, and the xxh3 */
	KP_DECODE_FAST,  /* checks no checksums of frames if there is an xxh3 */
	KP_DECODE_STEPS, /* as FAST, but the first bytes are wanted soon, and a chunked entry
			    is decoded by its seek table */
	/* into any memory, which can be reused */
	KP_DECODE_UNITS,  /* checks all; in pieces of kp_decode_unit bytes */
	KP_DECODE_PIECES, /* checks all; through a window */
	KP_DECODE_WINDOW, /* as PIECES, but checks no checksums of frames if there is an
			     xxh3 */
	KP_DECODE_PART, /* as PIECES, but does not check the xxh3, which covers more; from
			     windows that are no wider than the entry */
};

/*
 * Begin at the first byte.
 * INVALID_FORMAT, IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t kp_decode_open(const struct kpack_archive *a, size_t entry,
			     enum kp_decode_how how, struct kp_decode **out,
			     struct kpackx_error *why);

/*
 * Let D, whose entry is not decoded any more, borrow nothing of the archive, and keep its
 * memory for kp_decode_reopen.  Returns the bytes of that memory.
 */
uint64_t kp_decode_leave(struct kp_decode *d);

/*
 * As kp_decode_open, with D, which is as kp_decode_leave left it.  After an error
 * kp_decode_leave and kp_decode_close are allowed.
 */
kpack_error_t kp_decode_reopen(struct kp_decode *d, const struct kpack_archive *a,
			       size_t entry, enum kp_decode_how how,
			       struct kpackx_error *why);

/* KP_DECODE_PIECES and KP_DECODE_WINDOW: refuse windows of more than MAX bytes. */
kpack_error_t kp_decode_limit_window(struct kp_decode *d, uint64_t max,
				     struct kpackx_error *why);

/*
 * Decode the next SIZE bytes, or all that are left if SIZE is more; *DONE becomes the
 * number of all decoded bytes.  It reaches the entry's size only if the entry's frames end
 * there and its bytes have its xxh3.
 *
 * If BUF is one buffer of the entry's size, it is the same in every call, and more than
 * SIZE bytes may be decoded.  KP_DECODE_UNITS: SIZE is kp_decode_unit.
 * DECOMPRESSION_FAILED, INVALID_FORMAT, IO_ERROR, OUT_OF_MEMORY; then only close is
 * allowed.
 */
kpack_error_t kp_decode_next(struct kp_decode *d, void *buf, uint64_t size,
			     uint64_t *done, struct kpackx_error *why);

/*
 * KP_DECODE_UNITS: bytes of a full chunk; of an entry that is decoded through a window, or
 * is stored uncompressed, at most 256 KiB; of a shared one at most 16 MiB; otherwise all.
 */
uint64_t kp_decode_unit(const struct kp_decode *d);

/* Whether decoding failed because a frame has a window of more than the limit. */
bool kp_decode_too_wide(const struct kp_decode *d);

void kp_decode_close(struct kp_decode *d); /* NULL is allowed */

/*
 * Bytes of the window that KP_DECODE_PIECES and KP_DECODE_WINDOW need, as the first frame
 * states; 0: none, because the bytes are stored uncompressed.  Errors of kp_archive_source and
 * kp_source_read.
 */
kpack_error_t kp_decode_window(const struct kpack_archive *a, size_t entry,
			       uint64_t *window, struct kpackx_error *why);

/*
 * Bytes that KP_DECODE_STEPS will hold besides BUF; 0 too if the entry cannot be read,
 * which decoding reports.
 */
uint64_t kp_decode_memory(const struct kpack_archive *a, size_t entry);

#endif
