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
 *
 * Of an entry, or chunk, that would take most of the budget, or a large one's whose room
 * others are in the middle of reading, pieces are segments.  Where
 * its bytes are stored as they are, segments are read alone.  Else a pass decodes them in
 * order, as far as they are wanted and a little further, and rests; what was dropped and
 * is wanted again takes another pass from the start.  The xxh3 is compared at the end of
 * each: what is read of segments before it may be wrong, as what is served of a whole
 * entry before its last bytes.
 *
 * Nothing is decoded from an archive that was written to since it was opened.
 */
#ifndef FS_CONTENT_CONTENT_H
#define FS_CONTENT_CONTENT_H

#include "fs/tree/origin.h"

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

/* O was written to.  Called without locks, by any thread, once for each origin. */
typedef void content_changed(void *user, struct origin *o);

struct content_options {
	uint64_t budget;  /* bytes; some MB more are used where they must */
	unsigned threads; /* decoders, at least 1 */
	content_answer *answer;
	content_failure *failure;
	content_changed *changed; /* NULL: nobody wants to know */
	void *user;               /* for failure and changed */
};

/* Why decodes fail. */
enum content_fault {
	CONTENT_UNREADABLE, /* the archive cannot be read, or is shorter */
	CONTENT_CORRUPT,
	CONTENT_MISMATCH, /* decoded to other bytes than its xxh3 is of */
	CONTENT_CHANGED,  /* the archive was written to */
	CONTENT_NO_MEMORY,
	CONTENT_FAULTS
};
extern const char *const content_fault_names[CONTENT_FAULTS]; /* one word each */

/* Decodes are counted by how long they took: up to so many seconds, or longer. */
#define CONTENT_TIMES 11
extern const double content_time_bounds[CONTENT_TIMES];

struct content_stats {
	uint64_t reads; /* answered with bytes */
	uint64_t bytes_served;
	uint64_t hits; /* of the reads: without waiting for a decode; others are misses */
	uint64_t decodes; /* of pieces */
	uint64_t bytes_decoded;
	double decode_seconds;                    /* sum over the decodes */
	uint64_t decode_times[CONTENT_TIMES + 1]; /* each decode once, not cumulative */
	uint64_t crowded_out; /* pieces dropped for want of room, before their time */
	uint64_t expired;     /* pieces dropped as nobody asked for them */
	uint64_t passes;      /* begun */
	uint64_t restarts;    /* of these: over entries that had been passed or begun */
	uint64_t errors;      /* decodes that failed */
	uint64_t faults[CONTENT_FAULTS]; /* the same by reason */
	uint64_t held, held_most;        /* bytes of memory in use, now and ever */
	uint64_t budget;                 /* now: see content_shrink */
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
 * Read up to LEN bytes of WHAT at OFF; at its end fewer or none.  The origin need not be
 * held after the call.
 */
void content_read(struct content *c, struct origin_entry what, uint64_t off, size_t len,
		  void *token);

/* As content_read, with a callback of its own. */
void content_read_to(struct content *c, struct origin_entry what, uint64_t off,
		     size_t len, content_answer *answer, void *token);

/*
 * O will hardly be read any more: hold no reference to it longer than reads that run.
 * What is decoded of it stays as long as it would.
 */
void content_forget(struct content *c, const struct origin *o);

/*
 * Have no more than PERCENT of the budget from now on, and below 100 let go at once of
 * all that no read is using.
 */
void content_shrink(struct content *c, unsigned percent);

void content_stats(struct content *c, struct content_stats *out);

#endif
