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

#include "core/base/span.h"

/* Bytes of the frame for SIZE bytes of data. */
size_t kp_raw_frame_size(size_t size);

/* Write the frame of DATA to OUT, which must not overlap DATA. */
void kp_raw_frame_write(struct kp_span data, uint8_t *out);

#endif
