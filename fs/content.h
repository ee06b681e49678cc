/* SPDX-License-Identifier: MIT */
/*
 * Decoded bytes of archives' entries.  Knows no FUSE.
 *
 * A read is answered by a callback, exactly once: at once when the bytes are there,
 * else when they have been decoded, by whoever decoded them.  Nobody waits for anybody.
 * What is decoded is a piece: a chunk of a chunked entry, or a whole other entry.
 * Small pieces are decoded by the thread that first asks, larger ones by a pool,
 * and their first bytes are served before the last are there.  Many readers of one
 * piece cause one decode.
 *
 * Memory is bounded by a budget in bytes.  Pieces that were served whole go first, when
 * there are some megabytes of them or after two seconds: the kernel's page cache has
 * them by then.
 */
#ifndef FS_CONTENT_H
#define FS_CONTENT_H

#include "origin.h"

struct content;

/*
 * The answer to the read of TOKEN: SIZE bytes at DATA, valid during the call, or WHY it
 * failed (NULL on success).  Called without locks, by any thread.
 */
typedef void content_answer(void *token, const void *data, size_t size,
			    const struct kpackx_error *why);

/* A decode of WHAT failed.  Called without locks, by any thread, once per decode. */
typedef void content_failure(void *user, struct origin_entry what,
			     const struct kpackx_error *why);

struct content_options {
	uint64_t budget;  /* bytes */
	unsigned threads; /* decoders, at least 1 */
	content_answer *answer;
	content_failure *failure;
	void *user; /* for failure */
};

struct content_stats {
	uint64_t reads;
	uint64_t bytes_served;
	uint64_t decodes;
	uint64_t bytes_decoded;
	uint64_t errors; /* decodes that failed */
	uint64_t held;   /* bytes of memory in use now */
};

/* Starts threads.  OUT_OF_MEMORY. */
kpack_error_t content_new(const struct content_options *options, struct content **out,
			  struct kpackx_error *why);

/*
 * Stop, answer what is still waiting with an error, free.  No read may be running or
 * begin.  NULL is fine.
 */
void content_free(struct content *c);

/*
 * Read up to LEN bytes of WHAT at OFF; at its end fewer or none.  The origin need not be held
 * after the call.
 */
void content_read(struct content *c, struct origin_entry what, uint64_t off, size_t len,
		  void *token);

/* The same for who is not answered by the options' function. */
void content_read_to(struct content *c, struct origin_entry what, uint64_t off,
		     size_t len, content_answer *answer, void *token);

/* O will hardly be read any more: hold no reference to it longer than reads that run. */
void content_forget(struct content *c, const struct origin *o);

void content_stats(struct content *c, struct content_stats *out);

#endif
