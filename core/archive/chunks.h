/* SPDX-License-Identifier: MIT */
/*
 * A chunked entry: parts that decode alone, then a seek table in a skippable frame.  The
 * parts are frames, as in zstd's seekable format; or together they are one frame, whose
 * header belongs to the first part and whose checksum to the last, and no block of a part
 * refers to bytes before the part.
 *
 *   u32 0x184d2a5e, u32 bytes that follow
 *   per part: u32 compressed bytes, u32 decoded bytes [, u32 checksum when descriptor & 0x80:
 *   the low half of the XXH64 of the decoded bytes]
 *   u32 number of parts, u8 descriptor, u32 0x8f92eab1
 *
 * Source: zstd's contrib/seekable_format document.
 */
#ifndef KP_CORE_ARCHIVE_CHUNKS_H
#define KP_CORE_ARCHIVE_CHUNKS_H

#include "core/base/file.h"

#define KP_SEEK_FRAME UINT32_C(0x184d2a5e)
#define KP_SEEK_MAGIC UINT32_C(0x8f92eab1)
/* Bytes before the rows, and after them; the descriptor's bits. */
enum { KP_SEEK_HEAD = 8, KP_SEEK_FOOT = 9, KP_SEEK_SUMS = 0x80, KP_SEEK_RESERVED = 0x7c };
/* Bytes of a table for N parts, with checksums. */
#define KP_SEEK_TABLE_SIZE(n) (KP_SEEK_HEAD + 12 * (size_t)(n) + KP_SEEK_FOOT)

/* Chunk k holds the decoded bytes [k * chunk, min((k + 1) * chunk, size)). */
struct kp_chunks {
	struct kp_source stored;
	uint64_t chunk, size; /* decoded bytes of a full chunk, and of all */
	uint32_t n;
	uint64_t *offsets;     /* n + 1: where each part begins in the stored bytes */
	uint32_t *checksums;   /* n; NULL: the table has none */
	bool one_frame;        /* the parts are not frames, but together are one */
	size_t header, footer; /* bytes before its first and after its last block */
	/*
	 * In the footer: a checksum that covers all chunks, and which kp_chunks_read cannot
	 * compare.
	 */
	uint32_t sum;
};

/*
 * Read the seek table at the end of STORED, an entry of SIZE bytes in chunks of CHUNK bytes.
 * STORED is copied; what it borrows must stay valid.  The caller uses kp_chunks_fini, after
 * an error, too.
 * INVALID_FORMAT: no table, or a table that contradicts the bytes around it or the sizes.
 */
kpack_error_t kp_chunks_open(struct kp_chunks *c, const struct kp_source *stored,
			     uint64_t chunk, uint64_t size, struct kpackx_error *why);
void kp_chunks_fini(struct kp_chunks *c);

/* Decode chunk K into BUF.  Thread-safe. */
kpack_error_t kp_chunks_read(const struct kp_chunks *c, uint64_t k, void *buf,
			     struct kpackx_error *why);

/* The decoded bytes of chunk K. */
static inline uint64_t kp_chunk_size(const struct kp_chunks *c, uint64_t k)
{
	uint64_t left = c->size - k * c->chunk;

	return left < c->chunk ? left : c->chunk;
}

#endif
