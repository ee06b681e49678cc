/* SPDX-License-Identifier: MIT */
/*
 * Serves the decoded bytes of archives' entries.  Knows no FUSE.
 *
 * A callback answers each read exactly once: at once if the bytes are decoded already,
 * else when they are, on the thread that decodes them.  No thread waits for another.  The
 * unit of decoding is a piece: a chunk of a chunked entry, or the whole of another entry.
 * The thread that asks first decodes a small piece itself; a pool of threads decodes
 * larger pieces, and serves their first bytes before the last are decoded.  Many readers
 * of one piece cause one decode.
 *
 * Memory is bounded by a budget in bytes.  Pieces that were served whole are dropped
 * first, when there are some megabytes of them or after two seconds: the kernel's page
 * cache has their bytes by then.
 *
 * Pieces are segments, not whole entries or chunks, where one would take most of the
 * budget, where it is large and could only displace pieces that have readers in the
 * middle of them, and where a large entry is read in order from its start.  If the entry
 * is stored without compression and not read in order, each segment is read on its own; so
 * are small pieces of all entries of shared archives, whose decoded blocks may take a
 * quarter of the budget.  Else a pass decodes the segments in order, as far as they are
 * wanted and a little further, and then rests; a segment that was dropped and is wanted
 * again takes another pass from the start.  The xxh3 is compared at the end of each pass.
 * So bytes of segments before the end may be wrong, and so may bytes of a whole entry
 * that are served before its last ones.
 *
 * When entries are read one after another, those that come next are decoded ahead, some
 * megabytes of them, by decoders that have nothing else to do, while half of a large enough
 * budget is free.  A decoder leaves them when something is asked for.
 *
 * Nothing is decoded from an archive that was written to since it was opened.
 */
#ifndef FS_CONTENT_CONTENT_H
#define FS_CONTENT_CONTENT_H

#include <pthread.h>
#include <stdbool.h>
#include "fs/tree/origin.h"

/* --- the executor ---------------------------------------------------------------------- */

/*
 * What runs the jobs of a content, and lets them wait: threads, or in a test one job after
 * another.
 *
 * "The lock" is the one of the content's pieces.
 */
enum executor_job {
	JOB_DECODE, /* decode a piece that was queued */
	JOB_TEND,   /* free memory whose time is over */
	JOBS
};

struct executor {
	/*
	 * Without the lock, once: from now on call RUN(ARG, job) again and again, without
	 * the lock, until it returns false: several at once for JOB_DECODE, one for JOB_TEND.
	 * false: nothing could be started.
	 */
	bool (*start)(struct executor *e, bool (*run)(void *arg, enum executor_job job),
		      void *arg);

	/*
	 * Called by a job that has nothing to do, with LOCK, the lock: give it back, wait
	 * until the job is woken, the executor is ended, or SECONDS are over (0: no limit),
	 * and take it again.  As with a condition variable, it may return without a cause.
	 */
	void (*wait)(struct executor *e, enum executor_job job, pthread_mutex_t *lock,
		     unsigned seconds);

	/* With the lock: end one wait of a job of this kind, if there is one. */
	void (*wake)(struct executor *e, enum executor_job job);

	/*
	 * Without the lock, which LOCK is: set `stopped` with it, end all waits, and return
	 * when no job runs any more.  E is freed.  Called once, whatever start returned.
	 */
	void (*end)(struct executor *e, pthread_mutex_t *lock);

	bool stopped; /* jobs are to return soon; guarded by the lock */
};

/* One with DECODERS threads, at least 1, for JOB_DECODE.  NULL: no memory. */
struct executor *executor_threads(unsigned decoders);

/* --- the content ----------------------------------------------------------------------- */

struct content;

/*
 * The answer to the read of TOKEN: SIZE bytes at DATA, valid during the call, or WHY it
 * failed (NULL on success).  Called without locks, by any thread.
 */
typedef void content_answer(void *token, const void *data, size_t size,
			    const struct kpackx_error *why);

/*
 * Reports that a decode of WHAT failed.  Called without locks, by any thread, once per
 * decode.
 */
typedef void content_failure(void *user, struct origin_entry what,
			     const struct kpackx_error *why);

/*
 * Reports that O was written to.  Called without locks, by any thread, once for each
 * origin.
 */
typedef void content_changed(void *user, struct origin *o);

struct content_options {
	uint64_t budget;           /* bytes; exceeded by some MB where unavoidable */
	struct executor *executor; /* ended with the content; NULL: there was no memory */
	bool ahead;                /* decode what comes next for readers in order */
	content_failure *failure;
	content_changed *changed; /* NULL: not reported */
	void *user;               /* for failure and changed */
};

/* The reasons why decodes fail. */
enum content_fault {
	CONTENT_UNREADABLE, /* the archive cannot be read, or is shorter */
	CONTENT_CORRUPT,
	CONTENT_MISMATCH, /* the decoded bytes do not match the entry's xxh3 */
	CONTENT_CHANGED,  /* the archive was written to */
	CONTENT_NO_MEMORY,
	CONTENT_FAULTS
};
extern const char *const content_fault_names[CONTENT_FAULTS]; /* one word each */

/*
 * Upper bounds, in seconds, of the classes by which decodes are counted; the last has
 * none.
 */
#define CONTENT_TIMES 11
extern const double content_time_bounds[CONTENT_TIMES];

struct content_stats {
	uint64_t reads; /* answered with bytes */
	uint64_t bytes_served;
	uint64_t hits; /* reads that did not wait for a decode; other reads are misses */
	uint64_t decodes; /* of pieces */
	uint64_t bytes_decoded;
	double decode_seconds;                    /* sum over all decodes */
	uint64_t decode_times[CONTENT_TIMES + 1]; /* decodes by class, not cumulative */
	uint64_t crowded_out;                     /* pieces dropped early, to make room */
	uint64_t expired;  /* pieces dropped after a time without reads */
	uint64_t passes;   /* passes begun */
	uint64_t restarts; /* passes over entries that had a pass shortly before */
	uint64_t errors;   /* decodes that failed */
	uint64_t faults[CONTENT_FAULTS]; /* decodes that failed, by reason */
	uint64_t held, held_most;        /* bytes of memory in use: now, at most */
	uint64_t budget;                 /* the present one: see content_shrink */
};

/*
 * Starts the executor; if it fails, the executor has ended.  OUT_OF_MEMORY is the only error.
 */
kpack_error_t content_new(const struct content_options *options, struct content **out,
			  struct kpackx_error *why);

/*
 * End the executor, answer the reads that still wait with an error, and free C.  No call
 * may be running or begin.  NULL is fine.
 */
void content_free(struct content *c);

/*
 * Read up to LEN bytes of WHAT at OFF, for ANSWER, which gets TOKEN; at its end fewer or none.  The caller may release
 * its reference to the origin after the call.
 */
void content_read(struct content *c, struct origin_entry what, uint64_t off, size_t len,
		  content_answer *answer, void *token);

/*
 * O will hardly be read any more: hold no reference to it longer than running reads do.
 * Pieces that are decoded already stay as long as without this call.
 */
void content_forget(struct content *c, const struct origin *o);

/*
 * Use no more than PERCENT of the budget from now on.  Below 100, free at once all memory
 * that no read is using.
 */
void content_shrink(struct content *c, unsigned percent);

void content_stats(struct content *c, struct content_stats *out);

/*
 * As content_read, for a bundle: each part is read as its entry, so that its bytes are
 * decoded once for the bundle, the entry's own file, and all readers; the answer has the bytes of all parts between OFF and
 * OFF + LEN, or the first error.  The caller may release its reference after the call.
 */
void content_read_bundle(struct content *c, const struct bundle *b, uint64_t off,
			 size_t len, content_answer *answer, void *token);

#endif
