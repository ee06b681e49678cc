/* SPDX-License-Identifier: MIT */
/*
 * zstd frames: their headers, decoding one in memory, and decoding a run of them from a
 * file, piece by piece.
 *
 *   u32 0xfd2fb528, u8 descriptor: 7-6 form of the content size, 5 single segment,
 *   3 reserved, 2 checksum, 1-0 form of the dictionary
 *   [u8 window: 7-3 exponent - 10, 2-0 mantissa]      not if a single segment
 *   [dictionary: 1, 2 or 4 bytes] [content size: 1, 2 (less 256), 4 or 8 bytes]
 *   blocks: u24 size << 3 | type << 1 | last, the bytes (type 1, RLE: one byte)
 *   [u32 checksum]
 *
 *   skippable: u32 0x184d2a50 to 0x184d2a5f, u32 bytes that follow
 *
 * Source: RFC 8878, sections 3.1.1 and 3.1.2.
 */
#ifndef KP_CORE_ARCHIVE_FRAMES_H
#define KP_CORE_ARCHIVE_FRAMES_H

#include "core/base/file.h"

#define KP_FRAME_MAGIC UINT32_C(0xfd2fb528)

/* --- headers ------------------------------------------------------------------------- */

/* Bytes of the longest header. */
#define KP_FRAME_HEADER_MAX 18

#define KP_FRAME_SIZE_UNKNOWN UINT64_MAX

/* Flags of the descriptor. */
enum {
	KP_FRAME_CHECKSUM = 1 << 2,
	KP_FRAME_RESERVED = 1 << 3,
	KP_FRAME_SINGLE_SEGMENT = 1 << 5,
};

struct kp_frame_header {
	uint8_t size; /* bytes of the header */
	bool skippable;
	bool checksum;
	uint32_t dictionary; /* 0: none */
	uint64_t window;     /* bytes that blocks may refer back to */
	uint64_t content;    /* decoded bytes, or KP_FRAME_SIZE_UNKNOWN */
	uint64_t skip;       /* skippable: bytes that follow the header */
};

/*
 * Read the header that HEAD begins with.  false: it is no frame of zstd, zstd does not
 * decode it (reserved bits, a window of more than 2 GiB), or HEAD ends before the header.
 */
bool kp_frame_header_read(struct kp_span head, struct kp_frame_header *out);

/*
 * Decoded size that a frame's header states; false: it states none, or HEAD is no frame
 * with content.
 */
bool kp_zstd_content_size(struct kp_span head, uint64_t *size);

/* Whether STORED bytes of zstd can decode to SIZE bytes at all. */
bool kp_zstd_plausible(uint64_t stored, uint64_t size);

/*
 * Read the header of the frame at OFF of W's run, and find the bytes of the whole frame
 * by its blocks' headers.
 * DECOMPRESSION_FAILED: there is no frame; errors of kp_source_read.
 */
kpack_error_t kp_frame_measure(struct kp_window *w, uint64_t off,
			       struct kp_frame_header *header, uint64_t *size,
			       struct kpackx_error *why);

/* --- decoding in memory -------------------------------------------------------------- */

/*
 * Decode all frames in STORED into exactly SIZE bytes at BUF.  Skippable frames (the seek
 * table of chunked entries) are ignored.
 * DECOMPRESSION_FAILED: STORED is corrupt, or decodes to another size.  OUT_OF_MEMORY.
 */
kpack_error_t kp_zstd_decode(struct kp_span stored, void *buf, size_t size,
			     struct kpackx_error *why);

/* As kp_zstd_decode, of frames that refer to PREFIX; empty: they do not. */
kpack_error_t kp_zstd_decode_with(struct kp_span prefix, struct kp_span stored, void *buf,
				  size_t size, struct kpackx_error *why);

/* --- decoding piece by piece ---------------------------------------------------------- */

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
 *
 * *F is NULL, or its frames are not decoded any more and its memory is used.  The caller closes
 * *F, after an error, too.
 */
kpack_error_t kp_frames_open(struct kp_frames **f, const struct kp_source *stored,
			     enum kp_frames_into into, struct kpackx_error *why);
void kp_frames_close(struct kp_frames *f); /* NULL is allowed */

/* Bytes of memory that F has now, and that another run of frames would use. */
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
void kp_frames_limit_window(struct kp_frames *f, uint64_t max);

/*
 * KP_FRAMES_PIECES: the frames decode to at most SIZE bytes, so that no wider windows are
 * needed, whatever they state.
 */
void kp_frames_narrow_windows(struct kp_frames *f, uint64_t size);

/* Whether decoding failed because of a window larger than KP_FRAMES_PIECES allows. */
bool kp_frames_too_wide(const struct kp_frames *f);

/* Do not check the frames' checksums: for bytes that have a better checksum. */
void kp_frames_ignore_checksums(struct kp_frames *f);

#endif
