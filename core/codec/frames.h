/* SPDX-License-Identifier: MIT */
/* Decoding the zstd frames of an entry piece by piece, from where they are stored. */
#ifndef KP_CORE_CODEC_FRAMES_H
#define KP_CORE_CODEC_FRAMES_H

#include "core/base/file.h"

struct kp_frames;

enum kp_frames_into {
	KP_FRAMES_WHOLE,  /* one buffer for all bytes, which is the window too */
	KP_FRAMES_PIECES, /* any buffers; a window of KP_WINDOW_LOG_MAX is held */
};

/* STORED is copied, what it borrows must stay. */
kpack_error_t kp_frames_open(const struct kp_source *stored, enum kp_frames_into into,
			     struct kp_frames **out, struct kpackx_error *why);

/*
 * Decode into BUF, which has room for SIZE bytes and DONE of them already, until at least
 * UNTIL are there, or all frames have ended.  KP_FRAMES_WHOLE: BUF and SIZE are
 * the same each time.
 * DECOMPRESSION_FAILED: corrupt, cut short, or more than SIZE bytes.
 */
kpack_error_t kp_frames_decode(struct kp_frames *f, void *buf, uint64_t size,
			       uint64_t until, uint64_t *done, struct kpackx_error *why);

/*
 * KP_FRAMES_PIECES: hold no window of more than MAX bytes.  Below the least and above the
 * greatest there is, it is that one.
 */
kpack_error_t kp_frames_limit_window(struct kp_frames *f, uint64_t max,
				     struct kpackx_error *why);

/* Did decoding fail because a frame's window is wider than what is held for pieces? */
bool kp_frames_too_wide(const struct kp_frames *f);

/* Do not compare the frames' checksums: for bytes that have a better one. */
void kp_frames_ignore_checksums(struct kp_frames *f);

void kp_frames_close(struct kp_frames *f); /* NULL is fine */

#endif
