/* SPDX-License-Identifier: MIT */
/*
 * Memory for decoded bytes.  Large blocks are mapped, in huge pages if they are large
 * enough; blocks of the size of segments share huge pages.  A few returned blocks are kept
 * for reuse, because every fresh page costs a fault and is cleared before it is written.
 * Thread-safe.
 */
#ifndef FS_CONTENT_BUFFER_H
#define FS_CONTENT_BUFFER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
	uint8_t *data;
	size_t cap; /* usable bytes, at least as many as requested */
};

enum { BUFFERS_KEPT = 8, SLABS = 8 };

/* A huge page that is cut into blocks of the same size. */
struct slab {
	uint8_t *data; /* NULL: not mapped */
	unsigned used; /* a bit for each block */
};

struct buffers {
	size_t keep_max;      /* size of the largest block that may be kept */
	pthread_mutex_t lock; /* guards everything below */
	struct buffer kept[BUFFERS_KEPT];
	size_t kept_bytes;
	struct slab slabs[SLABS]; /* kept as well, used or not */
	unsigned n_slabs;         /* the number of those that may be mapped */
};

/*
 * Blocks of more than KEEP_MAX bytes are not kept; a fixed limit of 4 MiB holds, too.  All
 * kept blocks have at most 3 times as much, and all slabs 4 times.
 */
void buffers_init(struct buffers *b, size_t keep_max);
void buffers_fini(struct buffers *b);

/* A block of SIZE bytes or more; false: out of memory. */
bool buffers_get(struct buffers *b, uint64_t size, struct buffer *out);

/* Return a block.  data NULL is fine. */
void buffers_put(struct buffers *b, struct buffer block);

/* Return the kept blocks to the system. */
void buffers_trim(struct buffers *b);

#endif
