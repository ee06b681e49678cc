/* SPDX-License-Identifier: MIT */
/*
 * Decoding an entry from its first byte to its last, piece by piece, into memory that the
 * caller can reuse: the decoder holds only its window.  There may be any time between two
 * calls.  One thread at a time.
 */
#ifndef KP_CORE_ARCHIVE_PASS_H
#define KP_CORE_ARCHIVE_PASS_H

#include "archive.h"

struct kp_pass;

/*
 * Bytes of the window that decoding an entry needs, as its first frame states; 0: none,
 * because its bytes are stored uncompressed.  Errors of kp_archive_source and
 * kp_source_read.
 */
kpack_error_t kp_pass_window(const struct kpack_archive *a, size_t entry,
			     uint64_t *window, struct kpackx_error *why);

/* Begin a pass at the first byte.  Windows of more than WINDOW_MAX bytes are refused. */
kpack_error_t kp_pass_open(const struct kpack_archive *a, size_t entry,
			   uint64_t window_max, struct kp_pass **out,
			   struct kpackx_error *why);

/*
 * Decode the next SIZE bytes into BUF; the entry must have that many left.  The call that
 * reaches the entry's end succeeds only if its frames end there and all bytes have its
 * xxh3.
 * DECOMPRESSION_FAILED, INVALID_FORMAT, IO_ERROR, OUT_OF_MEMORY; then only close is
 * allowed.
 */
kpack_error_t kp_pass_next(struct kp_pass *p, void *buf, size_t size,
			   struct kpackx_error *why);

/* Whether the pass failed because a frame has a window of more than WINDOW_MAX bytes. */
bool kp_pass_too_wide(const struct kp_pass *p);

void kp_pass_close(struct kp_pass *p); /* NULL is allowed */

#endif
