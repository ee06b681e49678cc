/* SPDX-License-Identifier: MIT */
/*
 * The bytes of an archive with the scheme zstd-shared, in which content that is found
 * again is stored once (kpack-format(5)).
 *
 * The unique bytes of all objects are one run, which is cut into blocks of equal size,
 * each a zstd frame.  An object is a list of extents, parts of that run.  Blocks are
 * compressed with a common dictionary, which is a frame itself.
 *
 * Every call is thread-safe.
 */
#ifndef KP_CORE_ARCHIVE_SHARED_H
#define KP_CORE_ARCHIVE_SHARED_H

#include "core/base/errors.h"
#include "core/base/span.h"

/* The limits of the format. */
#define KP_SHARED_BLOCK_MIN (UINT64_C(64) << 10)
#define KP_SHARED_BLOCK_MAX (UINT64_C(1) << 20)
#define KP_SHARED_DICTIONARY_MAX (UINT64_C(16) << 20)
/*
 * In a span of an object, which has as many bytes as a block, so many extents begin (a message
 * in shared.c has both numbers).
 */
#define KP_SHARED_SPAN_EXTENTS 4096
/*
 * ... and they are in so many blocks, each of which is decoded for the span or a part of it.
 * Spans of rocBLAS's and rocSPARSE's code are in 2 blocks on average, and in 12 at most.
 */
#define KP_SHARED_SPAN_BLOCKS 16

/* The first 4 bytes of dictionaries that zstd has trained: it does not take them for content. */
#define KP_TRAINED_DICTIONARY UINT32_C(0xec30a437)

/* Objects, and bytes of their table: for each byte of it a reader has up to 24. */
#define KP_SHARED_OBJECTS_MAX UINT32_C(1048576)
#define KP_SHARED_TABLE_MAX (UINT64_C(64) << 20)

/* As the table of contents states it. */
struct kp_shared_layout {
	uint64_t offset, size; /* of the frames, in the file */
	uint64_t block_size;
	uint64_t unique_size;     /* bytes of the run, decoded */
	uint64_t dictionary_size; /* decoded; 0: none */
	struct kp_span frames;    /* u32 each: stored bytes of a frame */
	struct kp_span objects;   /* the objects' extents */
	struct kp_span
		hashes; /* u64 each: XXH3-64 of a frame's stored bytes; data NULL: none */
};

struct kp_shared_object {
	uint64_t size; /* decoded bytes */
	/*
	 * The object's part of the stored bytes: those of the unique bytes that no object before
	 * it has.  Where blocks were copied from another archive, it is an estimate.  All parts,
	 * dictionary and unused bytes add up to the size of all frames.
	 */
	uint64_t stored;
	size_t first; /* its extents are [first, next object's first) */
};

/* To be read only. */
struct kp_shared {
	int fd;
	uint64_t block_size, unique_size, dictionary_size;
	/* the dictionary, if there is one, is frame 0, and block 0 follows it */
	uint32_t n_frames, first_block;
	uint64_t *offsets; /* n_frames + 1, in the file */
	/* of stored frames, compared whenever these are read; NULL: none */
	uint64_t *hashes;
	struct kp_shared_object *objects; /* a sentinel follows the last */
	uint32_t n_objects;
	/* a part of an object, up to the next extent of the object or its end */
	struct kp_extent {
		uint64_t at;  /* offset in the object */
		uint64_t pos; /* where its bytes are in the run of unique bytes */
	} * extents;
	size_t n_extents;
};

/*
 * Check LAYOUT, of an archive of FILE_SIZE bytes open at FD, which is borrowed until close.
 * The spans of LAYOUT are not needed any more afterwards.
 * INVALID_FORMAT; OUT_OF_MEMORY.
 */
kpack_error_t kp_shared_open(int fd, uint64_t file_size,
			     const struct kp_shared_layout *layout,
			     struct kp_shared **out, struct kpackx_error *why);
void kp_shared_close(struct kp_shared *s); /* NULL is allowed */

/* Of a frame, its stored bytes, and its decoded bytes. */
static inline uint64_t kp_frame_stored(const struct kp_shared *s, uint32_t frame)
{
	return s->offsets[frame + 1] - s->offsets[frame];
}
static inline uint64_t kp_frame_size(const struct kp_shared *s, uint32_t frame)
{
	uint64_t left = s->unique_size - (frame - s->first_block) * s->block_size;

	if (frame < s->first_block)
		return s->dictionary_size;
	return left < s->block_size ? left : s->block_size;
}

/* The decoded bytes of extent EXTENT, which belongs to O. */
static inline uint64_t kp_extent_size(const struct kp_shared *s,
				      const struct kp_shared_object *o, size_t extent)
{
	return (extent + 1 < o[1].first ? s->extents[extent + 1].at : o->size) -
	       s->extents[extent].at;
}

/* --- reading -------------------------------------------------------------------------- */

/*
 * Read SIZE bytes of an object, which are inside it, from OFFSET on.  A block is decoded
 * once for all of its bytes in the next 16 blocks' worth of the object.
 * DECOMPRESSION_FAILED: a block is corrupt; IO_ERROR; OUT_OF_MEMORY.
 */
kpack_error_t kp_shared_read(const struct kp_shared *s, uint32_t object, uint64_t offset,
			     void *buf, uint64_t size, struct kpackx_error *why);

/*
 * How often reading SIZE bytes of an object, which are inside it, from OFFSET on goes to
 * another block: at least as often as it must decode one, if none is decoded already.
 */
uint64_t kp_shared_visits(const struct kp_shared *s, uint32_t object, uint64_t offset,
			  uint64_t size);

/* The bytes that reading holds at least, while it reads. */
uint64_t kp_shared_memory(const struct kp_shared *s);

/*
 * Read FRAME as it is stored into BUF.  DECOMPRESSION_FAILED: it does not match its hash;
 * IO_ERROR.
 */
kpack_error_t kp_shared_read_frame(const struct kp_shared *s, uint32_t frame,
				   uint8_t *buf, struct kpackx_error *why);

/*
 * *TRAINED: the dictionary begins as one that zstd has trained, which the format forbids:
 * this reader takes it for content all the same, an encoder does not.
 * The errors of kp_shared_read.
 */
kpack_error_t kp_shared_is_trained(const struct kp_shared *s, bool *trained,
				   struct kpackx_error *why);

/* Set BLOCKS of each block that has bytes of an object. */
void kp_shared_mark_blocks(const struct kp_shared *s, uint32_t object, bool *blocks);

/* --- frames that are decoded ------------------------------------------------------------ */

/*
 * The pool has the frames of all shared archives of this process that are decoded: the most
 * recently used ones stay.  A frame is decoded once for all threads that wait for it.
 */
struct kp_frame;

/* Get frame NUMBER of S decoded, until put.  Errors of kp_shared_read. */
kpack_error_t kp_pool_get(const struct kp_shared *s, uint32_t number,
			  struct kp_frame **out, struct kpackx_error *why);
const uint8_t *kp_frame_bytes(const struct kp_frame *f);
void kp_pool_put(struct kp_frame *f);

/*
 * Let the pool keep MOST bytes from now on, besides the frames in use; initially
 * KP_POOL_BYTES.  Frames beyond MOST are freed at once.  Later, the dictionary that was used
 * last is always kept, and at least half of MOST is for blocks, so that the pool may have up
 * to one dictionary more.
 */
#define KP_POOL_BYTES (UINT64_C(64) << 20)
void kp_pool_limit(uint64_t most);

/* The bytes of all frames in the pool. */
uint64_t kp_pool_held(void);

/* Free the frames of S, none of which is in use. */
void kp_pool_forget(const struct kp_shared *s);

/* --- the reach of a span ------------------------------------------------------------------ */

/*
 * The number of extents and the blocks that a reader of a span of an object meets.  Spans are
 * runs of block_size bytes, from the object's first byte on.  The writer keeps to the limits
 * of the format by it, and readers check them.
 */
struct kp_reach {
	uint64_t block_size;
	unsigned most;       /* blocks in a span */
	uint64_t span;       /* number of the span that the rest is about */
	unsigned n, extents; /* blocks; extents that begin in the span */
	uint32_t blocks[KP_SHARED_SPAN_BLOCKS];
};

/* Begin an object; MOST is at most KP_SHARED_SPAN_BLOCKS. */
void kp_reach_begin(struct kp_reach *r, uint64_t block_size, unsigned most);

/*
 * Add the extent of SIZE bytes, at least 1, at AT of the object, whose bytes are at POS.
 * false: a span would reach too much; then R is not what it was.  Blocks have numbers of
 * 32 bits.
 */
bool kp_reach_add(struct kp_reach *r, uint64_t at, uint64_t pos, uint64_t size);

#endif
