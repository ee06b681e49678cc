/* SPDX-License-Identifier: MIT */
/*
 * Parts that decode alone, then a seek table in a skippable frame.  The parts are frames,
 * as in zstd's seekable format; or together they are one frame, whose header belongs to
 * the first part and whose checksum to the last, and no block of a part refers to
 * bytes before the part.
 *
 *   u32 0x184d2a5e, u32 bytes that follow
 *   per frame: u32 compressed bytes, u32 decoded bytes [, u32 checksum when descriptor &
 *   0x80] u32 number of frames, u8 descriptor, u32 0x8f92eab1
 *
 * Source: zstd's contrib/seekable_format document.
 */
#ifndef KP_CORE_CODEC_SEEKABLE_H
#define KP_CORE_CODEC_SEEKABLE_H

#include "core/base/errors.h"
#include "core/base/file.h"

struct kp_seek_row {
	uint32_t stored, size;
	uint32_t checksum; /* low half of the XXH64 of the decoded bytes */
	bool checked;      /* the table has checksums */
};

/* Bytes of a table for N parts, with checksums. */
#define KP_SEEK_TABLE_SIZE(n) (8 + 12 * (size_t)(n) + 9)

/* Rows are written with their checksums. */
void kp_seek_table_write(const struct kp_seek_row *rows, uint32_t n, uint8_t *out);

/*
 * Read the table at the end of STORED.  The caller frees *ROWS.  The compressed sizes add
 * up to exactly the bytes before the table.
 * INVALID_FORMAT: no table, or a table that contradicts the bytes around it.
 */
kpack_error_t kp_seek_table_read(const struct kp_source *stored,
				 struct kp_seek_row **rows, uint32_t *n,
				 struct kpackx_error *why);

#endif
