/* SPDX-License-Identifier: MIT */
/*
 * An entry decoded from its first byte to its last, some bytes at a time, into memory
 * that is the caller's to reuse: the decoder holds a window of what it decoded, and
 * nothing else. May rest as long as it likes between two calls.  One thread at a time.
 */
#ifndef KP_CORE_ARCHIVE_PASS_H
#define KP_CORE_ARCHIVE_PASS_H

#include "archive.h"

struct kp_pass;

/*
 * Bytes of the window that decoding an entry needs, as its first frame says; 0: none, as
 * its bytes are stored plainly.  Errors of kp_archive_source and kp_source_read.
 */
kpack_error_t kp_pass_window(const struct kpack_archive *a, size_t entry,
			     uint64_t *window, struct kpackx_error *why);

/* A pass that is to stand before the first byte.  No window is larger than WINDOW_MAX. */
kpack_error_t kp_pass_open(const struct kpack_archive *a, size_t entry,
			   uint64_t window_max, struct kp_pass **out,
			   struct kpackx_error *why);

/*
 * Decode the next SIZE bytes into BUF; there are as many.  Those that end the entry come
 * only if all was right: its frames end there, and its xxh3 is that of all bytes.
 * DECOMPRESSION_FAILED, INVALID_FORMAT, IO_ERROR, OUT_OF_MEMORY; then only close is
 * allowed.
 */
kpack_error_t kp_pass_next(struct kp_pass *p, void *buf, size_t size,
			   struct kpackx_error *why);

/* Did it fail because a frame has a window larger than WINDOW_MAX? */
bool kp_pass_too_wide(const struct kp_pass *p);

void kp_pass_close(struct kp_pass *p); /* NULL is fine */

#endif
