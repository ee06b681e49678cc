/* SPDX-License-Identifier: MIT */
/* Decoding the stored zstd frames of an entry piece by piece. */
#ifndef KP_CORE_CODEC_FRAMES_H
#define KP_CORE_CODEC_FRAMES_H

#include "core/base/file.h"

struct kp_frames;

enum kp_frames_into {
	KP_FRAMES_WHOLE,  /* one buffer for all bytes, which are all wanted */
	KP_FRAMES_STEPS,  /* as WHOLE, but the first bytes are wanted soon */
	KP_FRAMES_PIECES, /* any buffers; the decoder holds the window */
};

/*
 * Begin decoding STORED, which is copied; the descriptor or memory that it borrows must
 * stay valid until close.  KP_FRAMES_PIECES: windows up to KP_WINDOW_LOG_MAX.
 *
 * With KP_FRAMES_WHOLE most frames are decoded in one call, with KP_FRAMES_STEPS small
 * ones, so that more is decoded than is asked for.  Then no window is held but the frame's
 * stored bytes: up to 32 MiB, or as many as the window would have.
 */
kpack_error_t kp_frames_open(const struct kp_source *stored, enum kp_frames_into into,
			     struct kp_frames **out, struct kpackx_error *why);

/*
 * As kp_frames_open, with the memory of F, whose frames are not decoded any more.  After
 * an error F can be reopened or closed.
 */
kpack_error_t kp_frames_reopen(struct kp_frames *f, const struct kp_source *stored,
			       enum kp_frames_into into, struct kpackx_error *why);

/* Bytes of memory that F has now, and would still have after kp_frames_reopen. */
uint64_t kp_frames_held(const struct kp_frames *f);

/*
 * The bytes that decoding STORED bytes of frames to SIZE bytes will hold besides the
 * caller's buffers, as far as HEAD, the first frame's header, shows.
 */
uint64_t kp_frames_memory(struct kp_span head, enum kp_frames_into into, uint64_t stored,
			  uint64_t size);

/*
 * Decode into BUF, which has room for SIZE bytes and already has *DONE bytes, until it
 * has at least UNTIL bytes, or all frames have ended; updates *DONE.  BUF and SIZE must be
 * the same in every call, except with KP_FRAMES_PIECES.
 * DECOMPRESSION_FAILED: corrupt, cut short, or more than SIZE bytes.
 */
kpack_error_t kp_frames_decode(struct kp_frames *f, void *buf, uint64_t size,
			       uint64_t until, uint64_t *done, struct kpackx_error *why);

/*
 * KP_FRAMES_PIECES: refuse windows of more than MAX bytes.  MAX is clamped to zstd's
 * smallest and largest window.
 */
kpack_error_t kp_frames_limit_window(struct kp_frames *f, uint64_t max,
				     struct kpackx_error *why);

/*
 * KP_FRAMES_PIECES: the frames decode to at most SIZE bytes, so that no wider windows are
 * needed, whatever they state.
 */
void kp_frames_narrow_windows(struct kp_frames *f, uint64_t size);

/* Whether decoding failed because of a window larger than KP_FRAMES_PIECES allows. */
bool kp_frames_too_wide(const struct kp_frames *f);

/* Do not check the frames' checksums: for bytes that have a better checksum. */
void kp_frames_ignore_checksums(struct kp_frames *f);

void kp_frames_close(struct kp_frames *f); /* NULL is allowed */

#endif
