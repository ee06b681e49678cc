/* SPDX-License-Identifier: MIT */
#include "compressed_text.h"
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <zstd.h>
#include "core/base/alloc.h"

/* Bytes of text in a block: about as many as the kernel reads at once. */
#define BLOCK (128 << 10)

struct block {
	void *bytes;
	size_t size;
};

struct compressed_text {
	struct block *blocks;
	size_t n_blocks, cap;
	uint64_t size;
	char *last; /* while writing: the bytes of the incomplete block */
};

struct compressed_text *compressed_text_new(void)
{
	return calloc(1, sizeof(struct compressed_text));
}

void compressed_text_free(struct compressed_text *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_blocks; i++)
		free(t->blocks[i].bytes);
	free(t->blocks);
	free(t->last);
	free(t);
}

uint64_t compressed_text_size(const struct compressed_text *t)
{
	return t->size;
}

/* --- writing ---------------------------------------------------------------------- */

/*
 * Compress SIZE bytes of the last block, and keep no more memory than the result needs.
 */
static bool add_block(struct compressed_text *t, size_t size)
{
	size_t bound = ZSTD_compressBound(size), used;
	void *room = malloc(bound);

	if (!room || !kp_grow(&t->blocks, t->n_blocks, &t->cap, sizeof(*t->blocks))) {
		free(room);
		return false;
	}
	used = ZSTD_compress(room, bound, t->last, size, 1);
	if (ZSTD_isError(used)) {
		free(room);
		return false;
	}
	t->blocks[t->n_blocks++] = (struct block){kp_large_trim(room, used), used};
	return true;
}

/* Returns the number of bytes written; less than SIZE is a failure. */
static ssize_t write_folded(void *cookie, const char *bytes, size_t size)
{
	struct compressed_text *t = cookie;
	size_t done = 0;

	while (done < size) {
		size_t at = t->size % BLOCK, n = BLOCK - at;

		n = n < size - done ? n : size - done;
		memcpy(t->last + at, bytes + done, n);
		t->size += n;
		done += n;
		if (at + n == BLOCK && !add_block(t, BLOCK))
			return 0;
	}
	return (ssize_t)size;
}

static int close_folded(void *cookie)
{
	struct compressed_text *t = cookie;
	size_t rest = t->size % BLOCK;
	bool ok = rest == 0 || add_block(t, rest);

	free(t->last);
	t->last = NULL;
	return ok ? 0 : EOF;
}

FILE *compressed_text_open(struct compressed_text *t)
{
	t->last = malloc(BLOCK);
	if (!t->last)
		return NULL;
	return fopencookie(
		t, "w",
		(cookie_io_functions_t){.write = write_folded, .close = close_folded});
}

/* --- reading ---------------------------------------------------------------------- */

static size_t block_size(const struct compressed_text *t, size_t i)
{
	uint64_t left = t->size - (uint64_t)i * BLOCK;

	return left < BLOCK ? (size_t)left : BLOCK;
}

/* Copy LEN bytes at OFF to BUF.  ROOM has space for one block. */
static bool copy_bytes(const struct compressed_text *t, uint64_t off, char *buf,
		       size_t len, char *room)
{
	while (len) {
		size_t i = (size_t)(off / BLOCK), at = (size_t)(off % BLOCK);
		size_t size = block_size(t, i), n = size - at < len ? size - at : len;

		if (ZSTD_decompress(room, BLOCK, t->blocks[i].bytes, t->blocks[i].size) !=
		    size)
			return false;
		memcpy(buf, room + at, n);
		buf += n;
		off += n;
		len -= n;
	}
	return true;
}

bool compressed_text_read(const struct compressed_text *t, uint64_t off, void *buf,
			  size_t len)
{
	char *room = malloc(BLOCK);
	bool ok = room && copy_bytes(t, off, buf, len, room);

	free(room);
	return ok;
}
