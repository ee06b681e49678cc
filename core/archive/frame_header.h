/* SPDX-License-Identifier: MIT */
/*
 * The header of a zstd frame, and the frame's end.
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
#ifndef KP_CORE_CODEC_FRAME_HEADER_H
#define KP_CORE_CODEC_FRAME_HEADER_H

#include "core/base/file.h"

/* Bytes of the longest header. */
#define KP_FRAME_HEADER_MAX 18

#define KP_FRAME_SIZE_UNKNOWN UINT64_MAX

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
 * Read the header of the frame at OFF of W's run, and find the bytes of the whole frame
 * by its blocks' headers.
 * DECOMPRESSION_FAILED: there is no frame; errors of kp_source_read.
 */
kpack_error_t kp_frame_measure(struct kp_window *w, uint64_t off,
			       struct kp_frame_header *header, uint64_t *size,
			       struct kpackx_error *why);

/* Bytes that zstd allocates to decode the frame in steps, besides its context. */
uint64_t kp_frame_window_memory(const struct kp_frame_header *h);

#endif
