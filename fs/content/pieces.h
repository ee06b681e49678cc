/* SPDX-License-Identifier: MIT */
/*
 * Pieces of decoded bytes and the memory they share with passes.  Decodes nothing itself.
 *
 * A piece is made, then admitted, which charges it, or queued until it can be.  Who
 * decodes it and who copies from it pins it.  When the last pin goes it is kept as long
 * as budget and time allow; then it is freed.
 *
 * One lock guards all of it; pieces_enter takes it.  What is not said to be called
 * without it is called with it, by any thread.
 */
#ifndef FS_CONTENT_PIECES_H
#define FS_CONTENT_PIECES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include "buffer.h"
#include "passes.h"

/*
 * Up to here the first reader decodes a piece itself, faster than waking another thread,
 * and it is not kept when it was served whole, being cheap to decode again.
 */
#define INLINE_MAX (256 << 10)
#define BUCKETS_LOG2 12

struct request;

enum piece_kind {
	PIECE_WHOLE,   /* all of an entry */
	PIECE_CHUNK,   /* of a chunked entry */
	PIECE_PLAIN,   /* its entry is stored without compression */
	PIECE_SEGMENT, /* of an entry that only a pass decodes */
};

struct piece {
	struct piece *same_bucket;
	struct piece_list *list; /* where it is linked, or NULL */
	struct piece *prev, *next;
	bool failed; /* in no bucket; freed when the last pin goes */
	bool charged;
	uint64_t entry; /* serial number of the origin, number of the entry */
	uint64_t unit;  /* bytes of the entry's pieces, but for the last */
	uint64_t number;
	struct origin *origin; /* with a reference until it was decoded; the caller's */
	enum piece_kind kind;
	uint64_t size, ready, served; /* bytes; served counts repeats */
	struct buffer buffer;
	unsigned pins; /* its decoder, and requests that copy from it */
	time_t used;
	struct request *parked; /* the caller's */

	/* of a segment */
	uint64_t window;   /* bytes that a pass needs */
	struct pass *pass; /* busy: the pass that the piece was queued for */
};

struct piece_list {
	struct piece *first, *last;
};

struct pieces {
	uint64_t most;           /* the budget when there is no pressure */
	_Atomic uint64_t budget; /* what it is now; written with the lock */
	pthread_mutex_t lock;    /* everything below */
	pthread_cond_t work;     /* the queue has a piece that may be admitted, or stop */
	pthread_cond_t idle;     /* something rests, or stop */
	bool stop;
	bool starved;    /* the head of the queue waits for memory: nobody overtakes it */
	unsigned active; /* pieces with pins: their memory cannot be had */
	uint64_t held;   /* bytes that are charged */
	uint64_t held_most;                /* ever */
	uint64_t n_crowded_out, n_expired; /* pieces that were dropped, and why */
	struct piece *buckets[1 << BUCKETS_LOG2];
	struct piece_list queue;
	struct piece_list
		joined; /* segments that wait for what a busy pass will come to */
	struct piece_list spent, rested; /* unused pieces, least recently used first */
	uint64_t spent_bytes;
	struct passes passes;
	struct piece *dead; /* to be freed when the lock is released */
	struct pass *dead_passes;
	struct buffers buffers; /* has its own lock */
	bool keeping;           /* it may keep blocks */
	time_t decoded;         /* when the last decode ended */
};

/*
 * Without the lock.  Of any budget more is used, up to 14 MB, where nothing could be
 * decoded otherwise.
 */
void pieces_init(struct pieces *ps, uint64_t budget);

/* Without the lock: free all pieces.  No thread may be inside any more. */
void pieces_fini(struct pieces *ps);

/* Take and release the lock; what died meanwhile is freed then. */
void pieces_enter(struct pieces *ps);
void pieces_leave(struct pieces *ps);

/* The largest piece there is to be: others find room beside it.  No lock needed. */
uint64_t pieces_fair(const struct pieces *ps);

/*
 * Would a piece of SIZE bytes find room only by dropping pieces that have readers in the
 * middle of them? Those readers would have them decoded again, and drop it in turn.
 */
bool pieces_is_crowded(const struct pieces *ps, uint64_t size);

/* The largest window of a pass; no lock needed. */
uint64_t pieces_window(const struct pieces *ps);

struct piece *pieces_find(struct pieces *ps, uint64_t entry, uint64_t unit,
			  uint64_t number);

/* A new piece, neither admitted nor queued, for pieces_find to find; NULL: no memory. */
struct piece *pieces_add(struct pieces *ps, uint64_t entry, uint64_t unit,
			 uint64_t number, uint64_t size);

/* Charge P and pin it for its decoder.  false: no room, or others wait for room. */
bool pieces_admit(struct pieces *ps, struct piece *p);

/* Is there room that nobody needs: free, or of what was served whole? */
bool pieces_has_spare(const struct pieces *ps, uint64_t size);

/* A new piece that nobody asked for yet, admitted, if there is such room; else NULL. */
struct piece *pieces_add_spare(struct pieces *ps, uint64_t entry, uint64_t unit,
			       uint64_t number, uint64_t size);

/* Let P, which was not admitted, wait for pieces_take. */
void pieces_queue(struct pieces *ps, struct piece *p);

/*
 * Without the lock: wait for a piece of the queue and admit it.  NULL: stopped; what the
 * queue still has stays there.
 */
struct piece *pieces_take(struct pieces *ps);

/*
 * Admit P if it is still queued; the calling pass will decode it. false: it is not
 * queued.
 */
bool pieces_catch(struct pieces *ps, struct piece *p);

/* Let P, a segment that was admitted, wait again, for a pass with another window. */
void pieces_defer(struct pieces *ps, struct piece *p, uint64_t window);

/*
 * PASS, busy, rests, or is freed if it ended; the requests that waited for it are queued.
 */
void pieces_release(struct pieces *ps, struct pass *pass);

/* Without the lock: memory for the bytes of P, which was admitted.  false: none. */
bool pieces_back(struct pieces *ps, struct piece *p);

/* The decode of P, still pinned, ended; one that failed is not found any more. */
void pieces_done(struct pieces *ps, struct piece *p, bool failed);

void pieces_pin(struct pieces *ps, struct piece *p);
void pieces_unpin(struct pieces *ps, struct piece *p); /* P may die */

/* Without the lock: give memory back that nobody asks for, until stopped. */
void pieces_tend(struct pieces *ps);

/* Without the lock: have PERCENT of the budget ; below 100, drop what rests. */
void pieces_shrink(struct pieces *ps, unsigned percent);

/* Have no pass over entries of O but those that run. */
void pieces_forget(struct pieces *ps, const struct origin *o);

/* Without the lock: end pieces_take and pieces_tend, for good. */
void pieces_stop(struct pieces *ps);

#endif
