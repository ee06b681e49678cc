/* SPDX-License-Identifier: MIT */
/*
 * zstd frames of uncompressed bytes, for data that does not become smaller.  Every
 * decoder reads them, just by copying.
 *
 *   u32 0xfd2fb528, u8 descriptor [, u8 window], decoded size (1, 2, 4 or 8 bytes)
 *   per 128 KiB: u24 size << 3 | raw << 1 | last, the bytes
 *   u32 low half of the XXH64 of all bytes
 *
 * Source: RFC 8878.
 */
#ifndef KP_CORE_CODEC_RAW_FRAME_H
#define KP_CORE_CODEC_RAW_FRAME_H

#include "core/base/errors.h"
#include "core/base/span.h"

/*
 * Take over PIECE, which belongs at offset AT of a frame, after the first DONE bytes of the
 * data were read.
 */
typedef kpack_error_t kp_piece_fn(void *arg, uint64_t at, struct kp_span piece,
				  uint64_t done, struct kpackx_error *why);

/* Bytes of the frame for SIZE bytes of data. */
size_t kp_raw_frame_size(size_t size);

/* Write the frame of DATA to OUT, which must not overlap DATA. */
void kp_raw_frame_write(struct kp_span data, uint8_t *out);

/* Pass the same frame to TAKE, in order.  OUT_OF_MEMORY, and what TAKE returns. */
kpack_error_t kp_raw_frame_pieces(struct kp_span data, kp_piece_fn *take, void *arg,
				  struct kpackx_error *why);

#endif
