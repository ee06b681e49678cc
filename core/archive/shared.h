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
#ifndef KP_CORE_SHARED_SHARED_H
#define KP_CORE_SHARED_SHARED_H

#include "core/base/errors.h"
#include "core/base/span.h"

/* The limits of the format. */
#define KP_SHARED_BLOCK_MIN (UINT64_C(64) << 10)
#define KP_SHARED_BLOCK_MAX (UINT64_C(1) << 20)
#define KP_SHARED_DICTIONARY_MAX (UINT64_C(16) << 20)
/*
 * In a span of an object, which has as many bytes as a block, so many extents begin (a message
 * in objects.c has both numbers).
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

struct kp_shared;

/*
 * Check LAYOUT, of an archive of FILE_SIZE bytes open at FD, which is borrowed until close.
 * The spans of LAYOUT are not needed any more afterwards.
 * INVALID_FORMAT; OUT_OF_MEMORY.
 */
kpack_error_t kp_shared_open(int fd, uint64_t file_size,
			     const struct kp_shared_layout *layout,
			     struct kp_shared **out, struct kpackx_error *why);
void kp_shared_close(struct kp_shared *s); /* NULL is allowed */

/* Whether the stored bytes of all frames have hashes, which are compared whenever they are read. */
bool kp_shared_has_hashes(const struct kp_shared *s);

/* The number of objects; of one object, the decoded bytes. */
uint32_t kp_shared_count(const struct kp_shared *s);
uint64_t kp_shared_object_size(const struct kp_shared *s, uint32_t object);
/*
 * The object's part of the stored bytes: those of the unique bytes that no object before it has.
 * Where blocks were copied from another archive, it is an estimate.
 * All parts, dictionary and unused bytes add up to the size of all frames.
 */
uint64_t kp_shared_object_stored(const struct kp_shared *s, uint32_t object);

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

/* --- blocks and extents, for writers that copy them ----------------------------------- */

uint64_t kp_shared_block_size(const struct kp_shared *s);
uint64_t kp_shared_dictionary_size(const struct kp_shared *s); /* 0: there is none */
uint64_t kp_shared_unique_size(const struct kp_shared *s);

/* A frame as it is stored. */
struct kp_shared_frame {
	uint64_t offset, stored; /* in the file */
	uint64_t size;           /* decoded */
};
/* Frame FRAME; the dictionary, if there is one, is frame 0, and block 0 follows it. */
struct kp_shared_frame kp_shared_frame(const struct kp_shared *s, uint32_t frame);
/*
 * Read FRAME as it is stored into BUF.  DECOMPRESSION_FAILED: it does not match its hash;
 * IO_ERROR.
 */
kpack_error_t kp_shared_read_frame(const struct kp_shared *s, uint32_t frame,
				   uint8_t *buf, struct kpackx_error *why);
/* The number of the frame of block 0. */
uint32_t kp_shared_first_block(const struct kp_shared *s);

/* The number of extents of an object; of one of them, its place in the unique bytes. */
size_t kp_shared_extent_count(const struct kp_shared *s, uint32_t object);
void kp_shared_extent(const struct kp_shared *s, uint32_t object, size_t extent,
		      uint64_t *pos, uint64_t *size);

/*
 * *TRAINED: the dictionary begins as one that zstd has trained, which the format forbids:
 * this reader takes it for content all the same, an encoder does not.
 * The errors of kp_shared_read.
 */
kpack_error_t kp_shared_is_trained(const struct kp_shared *s, bool *trained,
				   struct kpackx_error *why);

/* --- blocks, for checks ------------------------------------------------------------- */

uint32_t kp_shared_block_count(const struct kp_shared *s);
/* Set BLOCKS of each block that has bytes of an object. */
void kp_shared_mark_blocks(const struct kp_shared *s, uint32_t object, bool *blocks);

#endif
