/* SPDX-License-Identifier: MIT */
/*
 * A seek table is read from its end: the foot says how many rows there are, and so where the
 * table begins; its rows must add up to exactly the bytes before it, and state the sizes that
 * the entry's size and chunk imply.  What a row says of its part is compared with the part's
 * own header when it is decoded, because a table can be wrong where frames are not.
 *
 * A part of a single frame has no header: its blocks are given one, and the last is marked as
 * such, so that zstd decodes them as a frame of their own.
 */
#include "chunks.h"
#include <stdlib.h>
#include <xxhash.h>
#include <zstd.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "frames.h"

/* Most stored bytes of a chunk to read at once; larger chunks are read in pieces. */
static const size_t STORED_MAX = 256 << 10;

/* The header of a frame of one segment that states its size in 4 bytes. */
enum { PART_HEADER = 9 };

static kpack_error_t fail_mismatch(struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "seek table: a row does not match its frame");
}

kpack_error_t kp_chunks_open(struct kp_chunks *c, const struct kp_source *stored,
			     uint64_t chunk, uint64_t size, struct kpackx_error *why)
{
	uint64_t want, table, row_size, begin, at = 0;
	uint8_t foot[KP_SEEK_FOOT], head[KP_SEEK_HEAD];
	uint8_t room[KP_FRAME_HEADER_MAX];
	KP_AUTO_FREE uint8_t *rows = NULL;
	struct kp_frame_header h;
	struct kp_span s;
	uint32_t n;

	*c = (struct kp_chunks){.stored = *stored, .chunk = chunk, .size = size};
	if (chunk < KP_CHUNK_MIN || chunk > KP_CHUNK_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "metadata: chunk %llu is outside %d..%d",
			       (unsigned long long)chunk, KP_CHUNK_MIN, KP_CHUNK_MAX);

	/* the foot says how many rows there are, and so where the head is */
	if (stored->size < sizeof(head) + sizeof(foot))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "seek table: missing in %llu bytes",
			       (unsigned long long)stored->size);
	KP_TRY(kp_source_read(stored, stored->size - sizeof(foot), foot, sizeof(foot),
			      why));
	if (kp_le32(foot + 5) != KP_SEEK_MAGIC || foot[4] & KP_SEEK_RESERVED)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "seek table: missing");
	n = kp_le32(foot);
	row_size = foot[4] & KP_SEEK_SUMS ? 12 : 8;
	table = sizeof(head) + n * row_size + sizeof(foot);
	if (table > stored->size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "seek table: %u rows in %llu bytes", n,
			       (unsigned long long)stored->size);
	begin = stored->size - table;
	KP_TRY(kp_source_read(stored, begin, head, sizeof(head), why));
	if (kp_le32(head) != KP_SEEK_FRAME || kp_le32(head + 4) != table - sizeof(head))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "seek table: %u rows do not fit its frame", n);
	want = size ? (size - 1) / chunk + 1 : 1; /* an empty frame */
	if (n != want)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "seek table: %u rows for %llu bytes in chunks of %llu", n,
			       (unsigned long long)size, (unsigned long long)chunk);

	/* the rows */
	KP_TRY(kp_new(&rows, n * row_size, "a seek table", why));
	KP_TRY(kp_new(&c->offsets, (size_t)n + 1, "a seek table", why));
	if (row_size == 12)
		KP_TRY(kp_new(&c->checksums, n, "a seek table", why));
	KP_TRY(kp_source_read(stored, begin + sizeof(head), rows, n * row_size, why));
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *row = rows + i * row_size;

		if (kp_le32(row + 4) != kp_chunk_size(c, i))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "seek table: row %u says %u bytes, not %llu", i,
				       kp_le32(row + 4),
				       (unsigned long long)kp_chunk_size(c, i));
		c->offsets[i] = at;
		if (c->checksums)
			c->checksums[i] = kp_le32(row + 8);
		at += kp_le32(row);
	}
	if (at != begin)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "seek table: rows add up to %llu of %llu bytes",
			       (unsigned long long)at, (unsigned long long)begin);
	c->offsets[n] = at;
	c->n = n;
	/* a chunk has a checksum in the table, whose bytes were compared with their hashes */
	if (c->checksums)
		c->stored.hashes = NULL;
	if (n < 2)
		return KPACK_SUCCESS;

	/*
	 * What the parts are: frames, or the blocks of one.  The magic of a frame cannot be a
	 * block's header: it would state more than 128 KiB.
	 */
	KP_TRY(kp_source_head(&c->stored, c->offsets[1], room, sizeof(room), &s, why));
	if (kp_frame_header_read(s, &h))
		return KPACK_SUCCESS;
	KP_TRY(kp_source_head(&c->stored, 0, room, sizeof(room), &s, why));
	if (!kp_frame_header_read(s, &h) || h.skippable || h.dictionary ||
	    h.content != size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "seek table: not of one frame of %llu bytes, nor of "
			       "several frames",
			       (unsigned long long)size);
	c->one_frame = true;
	c->header = h.size;
	if (!h.checksum)
		return KPACK_SUCCESS;
	c->footer = sizeof(c->sum);
	if (at < c->footer)
		return fail_mismatch(why);
	KP_TRY(kp_source_read(&c->stored, at - c->footer, room, c->footer, why));
	c->sum = kp_le32(room);
	return KPACK_SUCCESS;
}

void kp_chunks_fini(struct kp_chunks *c)
{
	free(c->offsets);
	free(c->checksums);
	*c = (struct kp_chunks){0};
}

/* Decode a part that must be exactly one frame, as its row says. */
static kpack_error_t read_frame(const struct kp_source *stored, void *buf, uint64_t size,
				struct kpackx_error *why)
{
	uint8_t room[KP_FRAME_HEADER_MAX];
	KP_AUTO_FREE uint8_t *bytes = NULL;
	struct kp_frames *f = NULL;
	struct kp_span s;
	uint64_t stated, done = 0;
	kpack_error_t err;

	/* in memory it can be seen that nothing follows the frame */
	if (stored->size <= STORED_MAX) {
		KP_TRY(kp_source_load(stored, UINT64_MAX, "a chunk", &bytes, why));
		s = (struct kp_span){bytes, (size_t)stored->size};
		if (ZSTD_findFrameCompressedSize(s.data, s.size) != s.size ||
		    !kp_zstd_content_size(s, &stated) || stated != size)
			return fail_mismatch(why);
		return kp_zstd_decode(s, buf, (size_t)size, why);
	}
	/* without holding the stored bytes of a large frame in memory */
	KP_TRY(kp_source_head(stored, 0, room, sizeof(room), &s, why));
	if (!kp_zstd_content_size(s, &stated) || stated != size)
		return fail_mismatch(why);
	err = kp_frames_open(&f, stored, KP_FRAMES_WHOLE, why);
	if (!err)
		err = kp_frames_decode(f, buf, size, UINT64_MAX, &done, why);
	kp_frames_close(f);
	return err || done == size ? err : fail_mismatch(why);
}

/* Decode part K of a single frame: its blocks, made a frame of their own. */
static kpack_error_t read_blocks(const struct kp_chunks *c, uint64_t k, void *buf,
				 struct kpackx_error *why)
{
	uint64_t before = k == 0 ? c->header : 0, after = k + 1 == c->n ? c->footer : 0;
	uint64_t at = c->offsets[k], n = c->offsets[k + 1] - at,
		 size = kp_chunk_size(c, k);
	KP_AUTO_FREE uint8_t *bytes = NULL;
	uint8_t *block, *end;

	/* a row may state gigabytes; blocks take no more than bytes that cannot be compressed */
	if (n < before + after || n > ZSTD_compressBound((size_t)size) + before + after)
		return fail_mismatch(why);
	n -= before + after;
	bytes = malloc(PART_HEADER + (size_t)n);
	if (!bytes)
		return kp_fail_memory(why, n, "a chunk");
	kp_put_le32(bytes, KP_FRAME_MAGIC);
	bytes[4] = 2 << 6 | 1 << 5;
	kp_put_le32(bytes + 5, (uint32_t)size);
	block = bytes + PART_HEADER;
	end = block + n;
	KP_TRY(kp_source_read(&c->stored, at + before, block, (size_t)n, why));
	for (;;) { /* mark the last block as such; it must end where the part ends */
		uint32_t word;
		size_t stored;

		if (end - block < 3)
			return fail_mismatch(why);
		word = block[0] | block[1] << 8 | (uint32_t)block[2] << 16;
		stored = 3 +
			 ((word >> 1 & 3) == 1 ? 1 : word >> 3); /* 1: one byte repeats */
		if (stored > (size_t)(end - block))
			return fail_mismatch(why);
		if (stored == (size_t)(end - block))
			break;
		block += stored;
	}
	block[0] |= 1;
	return kp_zstd_decode((struct kp_span){bytes, PART_HEADER + (size_t)n}, buf,
			      (size_t)size, why);
}

kpack_error_t kp_chunks_read(const struct kp_chunks *c, uint64_t k, void *buf,
			     struct kpackx_error *why)
{
	uint64_t at = c->offsets[k], size = kp_chunk_size(c, k);
	struct kp_source part;

	if (c->one_frame)
		KP_TRY(read_blocks(c, k, buf, why));
	else if (kp_source_sub(&c->stored, at, c->offsets[k + 1] - at, &part))
		KP_TRY(read_frame(&part, buf, size, why));
	else
		return fail_mismatch(why);
	if (c->checksums && (uint32_t)XXH64(buf, (size_t)size, 0) != c->checksums[k])
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "chunk %llu: its checksum does not match",
			       (unsigned long long)k);
	return KPACK_SUCCESS;
}
