/* SPDX-License-Identifier: MIT */
/* The frames of a shared archive: its dictionary, and its unique bytes in blocks. */
#ifndef KP_CORE_WRITER_BLOCKS_H
#define KP_CORE_WRITER_BLOCKS_H

#include "core/archive/shared.h"
#include "share.h"
#include "writer.h"

/* A dictionary is at most this part of the unique bytes that it is chosen for. */
enum { KP_DICTIONARY_SHARE = 4 };

struct kp_blocks {
	uint64_t dictionary_size; /* 0: none */
	uint8_t *sizes;           /* u32 each: stored bytes of the frames */
	uint8_t *hashes;          /* u64 each: XXH3-64 of them */
	uint32_t n;
};

/* The blocks with which the unique bytes begin are those of another archive. */
struct kp_copied {
	const struct kp_shared *from; /* NULL: none; borrowed until finish */
	uint32_t *blocks;             /* their numbers there, ascending; owned */
	uint32_t n;
	uint64_t stored; /* bytes of these frames and the dictionary's */
};

struct kp_blocks_how {
	int level;
	uint64_t ns;   /* CPU time for all blocks, whatever LEVEL is; 0: LEVEL */
	unsigned jobs; /* threads */
};

/*
 * Copy the frames of C, and its archive's dictionary.  Compress the rest of
 * U, which is flushed, as HOW says, and append the frames to W.  The frames do not depend
 * on the number of threads; memory may allow fewer threads.  The caller frees the tables of
 * OUT, after a failure, too.
 * IO_ERROR; OUT_OF_MEMORY; INVALID_ARGUMENT: a level that zstd does not have.
 */
kpack_error_t kp_blocks_write(const struct kp_unique *u, const struct kp_copied *c,
			      const struct kp_blocks_how *how, struct kp_writer *w,
			      struct kp_blocks *out, struct kpackx_error *why);

#endif
