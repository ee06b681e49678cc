/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>
#include "archive.h"
#include "codec.h"
#include "frames.h"
#include "core/base/bounds.h"
#include "seekable.h"

/* Most stored bytes of a chunk to read at once; larger chunks are read in pieces. */
static const size_t STORED_MAX = 256 << 10;

struct kp_chunks {
	struct kp_source stored;
	uint64_t chunk, size; /* decoded bytes of a full chunk, and of all */
	uint32_t n;
	uint64_t *offsets;     /* n + 1: where each part begins in the stored bytes */
	uint32_t *checksums;   /* n; NULL: the table has none */
	bool one_frame;        /* the parts are not frames, but together are one */
	size_t header, footer; /* bytes before its first and after its last block */
	uint32_t sum;          /* in the footer */
};

static uint64_t chunk_size(const struct kp_chunks *c, uint64_t k)
{
	uint64_t begin = k * c->chunk;

	return c->size - begin < c->chunk ? c->size - begin : c->chunk;
}

static kpack_error_t fail_mismatch(struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "seek table: a row does not match its frame");
}

/* An empty entry has one empty frame. */
static kpack_error_t check_shape(const struct kp_chunks *c, uint32_t rows,
				 struct kpackx_error *why)
{
	uint64_t want = c->size ? (c->size - 1) / c->chunk + 1 : 1;

	if (rows != want)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "seek table: %u rows for %llu bytes in chunks of %llu",
			       rows, (unsigned long long)c->size,
			       (unsigned long long)c->chunk);
	return KPACK_SUCCESS;
}

static kpack_error_t take_rows(struct kp_chunks *c, const struct kp_seek_row *rows,
			       uint32_t n, struct kpackx_error *why)
{
	uint64_t at = 0;

	KP_TRY(check_shape(c, n, why));
	c->offsets = malloc(((size_t)n + 1) * sizeof(*c->offsets));
	if (rows[0].checked)
		c->checksums = malloc(n * sizeof(*c->checksums));
	if (!c->offsets || (rows[0].checked && !c->checksums))
		return kp_fail_memory(why, 12 * ((uint64_t)n + 1), "a seek table");
	for (uint32_t i = 0; i < n; i++) {
		if (rows[i].size != chunk_size(c, i))
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "seek table: row %u says %u bytes, not %llu", i,
				       rows[i].size,
				       (unsigned long long)chunk_size(c, i));
		c->offsets[i] = at;
		if (c->checksums)
			c->checksums[i] = rows[i].checksum;
		at += rows[i].stored;
	}
	c->offsets[n] = at;
	c->n = n;
	return KPACK_SUCCESS;
}

/*
 * Find out what the parts are.  The magic of a frame cannot be a block's header: it would
 * state more than 128 KiB.
 */
static kpack_error_t find_form(struct kp_chunks *c, struct kpackx_error *why)
{
	uint8_t room[KP_FRAME_HEADER_MAX];
	struct kp_frame_header h;
	struct kp_span head;

	if (c->n < 2)
		return KPACK_SUCCESS;
	KP_TRY(kp_source_head(&c->stored, c->offsets[1], room, sizeof(room), &head, why));
	if (kp_frame_header_read(head, &h))
		return KPACK_SUCCESS;
	KP_TRY(kp_source_head(&c->stored, 0, room, sizeof(room), &head, why));
	if (!kp_frame_header_read(head, &h) || h.skippable || h.dictionary ||
	    h.content != c->size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "seek table: not of one frame of %llu bytes, nor of "
			       "several frames",
			       (unsigned long long)c->size);
	c->one_frame = true;
	c->header = h.size;
	c->footer = h.checksum ? 4 : 0;
	if (!h.checksum)
		return KPACK_SUCCESS;
	if (c->offsets[c->n] < sizeof(c->sum))
		return fail_mismatch(why);
	KP_TRY(kp_source_read(&c->stored, c->offsets[c->n] - 4, room, 4, why));
	c->sum = kp_le32(room);
	return KPACK_SUCCESS;
}

static kpack_error_t open_chunks(struct kp_chunks *c, const struct kpack_archive *a,
				 size_t entry, struct kpackx_error *why)
{
	struct kp_seek_row *rows;
	struct kp_entry_info info;
	kpack_error_t err;
	uint32_t n;

	kp_archive_entry(a, entry, &info);
	c->chunk = kp_archive_decoding_facts(a, entry).chunk;
	if (c->chunk < KP_CHUNK_MIN || c->chunk > KP_CHUNK_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "metadata: chunk %llu is outside %d..%d",
			       (unsigned long long)c->chunk, KP_CHUNK_MIN, KP_CHUNK_MAX);
	c->size = info.size;
	KP_TRY(kp_archive_source(a, entry, &c->stored, why));
	KP_TRY(kp_seek_table_read(&c->stored, &rows, &n, why));
	err = take_rows(c, rows, n, why);
	free(rows);
	/* a chunk has a checksum in the table, whose bytes were compared with their hashes */
	if (c->checksums)
		c->stored.hashes = NULL;
	return err ? err : find_form(c, why);
}

kpack_error_t kp_chunks_open(const struct kpack_archive *a, size_t entry,
			     struct kp_chunks **out, struct kpackx_error *why)
{
	struct kp_chunks *c = calloc(1, sizeof(*c));
	kpack_error_t err;

	if (!c)
		return kp_fail_memory(why, sizeof(*c), "chunks");
	err = open_chunks(c, a, entry, why);
	if (err)
		kp_chunks_close(c);
	else
		*out = c;
	return err;
}

uint64_t kp_chunks_count(const struct kp_chunks *c)
{
	return c->n;
}

uint64_t kp_chunks_size(const struct kp_chunks *c)
{
	return c->chunk;
}

bool kp_chunks_have_sum(const struct kp_chunks *c, uint32_t *sum)
{
	*sum = c->sum;
	return c->footer != 0;
}

/* Decode a chunk whose stored bytes must be exactly one frame, as its row says. */
static kpack_error_t decode_chunk(struct kp_span stored, void *buf, uint64_t size,
				  struct kpackx_error *why)
{
	uint64_t stated;

	if (ZSTD_findFrameCompressedSize(stored.data, stored.size) != stored.size ||
	    !kp_zstd_content_size(stored, &stated) || stated != size)
		return fail_mismatch(why);
	return kp_zstd_decode(stored, buf, (size_t)size, why);
}

static kpack_error_t read_small(const struct kp_source *stored, void *buf, uint64_t size,
				struct kpackx_error *why)
{
	kpack_error_t err;
	uint8_t *bytes;

	KP_TRY(kp_source_load(stored, UINT64_MAX, "a chunk", &bytes, why));
	err = decode_chunk((struct kp_span){bytes, (size_t)stored->size}, buf, size, why);
	free(bytes);
	return err;
}

/* Decode without holding the stored bytes of a large frame in memory. */
static kpack_error_t read_large(const struct kp_source *stored, void *buf, uint64_t size,
				struct kpackx_error *why)
{
	uint8_t room[KP_FRAME_HEADER_MAX];
	struct kp_frames *f;
	struct kp_span head;
	uint64_t stated, done = 0;
	kpack_error_t err;

	KP_TRY(kp_source_head(stored, 0, room, sizeof(room), &head, why));
	if (!kp_zstd_content_size(head, &stated) || stated != size)
		return fail_mismatch(why);
	KP_TRY(kp_frames_open(stored, KP_FRAMES_WHOLE, &f, why));
	err = kp_frames_decode(f, buf, size, UINT64_MAX, &done, why);
	kp_frames_close(f);
	return err || done == size ? err : fail_mismatch(why);
}

/* --- parts of one frame -------------------------------------------------------------- */

/* The header of a frame of one segment that states its size in 4 bytes. */
enum { PART_HEADER = 9 };

static void write_part_header(uint32_t size, uint8_t *out)
{
	kp_put_le32(out, 0xfd2fb528);
	out[4] = 2 << 6 | 1 << 5;
	kp_put_le32(out + 5, size);
}

/* Mark the last of the BLOCKS as such; false: they do not end where the part ends. */
static bool end_blocks(uint8_t *blocks, size_t size)
{
	size_t at = 0;

	while (size - at >= 3) {
		uint32_t word =
			blocks[at] | blocks[at + 1] << 8 | (uint32_t)blocks[at + 2] << 16;
		size_t n = 3 + ((word >> 1 & 3) == 1 ? 1 : word >> 3);

		if (n > size - at)
			return false;
		if (n == size - at) {
			blocks[at] |= 1;
			return true;
		}
		at += n;
	}
	return false;
}

/* Decode BLOCKS, read into BYTES after room for a header, as a frame of their own. */
static kpack_error_t decode_part(const struct kp_source *blocks, uint8_t *bytes,
				 void *buf, uint64_t size, struct kpackx_error *why)
{
	size_t n = (size_t)blocks->size;

	KP_TRY(kp_source_read(blocks, 0, bytes + PART_HEADER, n, why));
	if (!end_blocks(bytes + PART_HEADER, n))
		return fail_mismatch(why);
	write_part_header((uint32_t)size, bytes);
	return kp_zstd_decode((struct kp_span){bytes, PART_HEADER + n}, buf, (size_t)size,
			      why);
}

static kpack_error_t read_part(const struct kp_chunks *c, uint64_t k, void *buf,
			       struct kpackx_error *why)
{
	uint64_t before = k == 0 ? c->header : 0, after = k + 1 == c->n ? c->footer : 0;
	uint64_t at = c->offsets[k], n = c->offsets[k + 1] - at, size = chunk_size(c, k);
	struct kp_source blocks;
	uint8_t *bytes;
	kpack_error_t err;

	if (n < before + after || n > ZSTD_compressBound((size_t)size) + before + after ||
	    !kp_source_sub(&c->stored, at + before, n - before - after, &blocks))
		return fail_mismatch(why);
	bytes = malloc(PART_HEADER + (size_t)blocks.size);
	if (!bytes)
		return kp_fail_memory(why, blocks.size, "a chunk");
	err = decode_part(&blocks, bytes, buf, size, why);
	free(bytes);
	return err;
}

/* --- any parts ------------------------------------------------------------------------ */

static kpack_error_t read_frame(const struct kp_chunks *c, uint64_t k, void *buf,
				struct kpackx_error *why)
{
	uint64_t at = c->offsets[k], n = c->offsets[k + 1] - at;
	struct kp_source stored;

	if (!kp_source_sub(&c->stored, at, n, &stored))
		return fail_mismatch(why);
	if (n > STORED_MAX)
		return read_large(&stored, buf, chunk_size(c, k), why);
	return read_small(&stored, buf, chunk_size(c, k), why);
}

kpack_error_t kp_chunks_read(const struct kp_chunks *c, uint64_t k, void *buf,
			     struct kpackx_error *why)
{
	KP_TRY(c->one_frame ? read_part(c, k, buf, why) : read_frame(c, k, buf, why));
	if (c->checksums &&
	    (uint32_t)XXH64(buf, (size_t)chunk_size(c, k), 0) != c->checksums[k])
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "chunk %llu: its checksum does not match",
			       (unsigned long long)k);
	return KPACK_SUCCESS;
}

void kp_chunks_close(struct kp_chunks *c)
{
	if (!c)
		return;
	free(c->offsets);
	free(c->checksums);
	free(c);
}
