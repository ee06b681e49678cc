/* SPDX-License-Identifier: MIT */
/*
 * What the files of this folder share: the memory of decoded bytes (buffer.c), the pieces and
 * passes that it is for (pieces.c), and a content and its requests, between content.c, which
 * takes a read from its arrival to its answer, and decode.c, which decodes the pieces that it
 * waits for.
 */
#ifndef FS_CONTENT_INTERNAL_H
#define FS_CONTENT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include "content.h"
#include "decoders.h"

/* --- buffer.c ------------------------------------------------------------------------- */

/*
 * Memory for decoded bytes.  Blocks that are not small come from one room, whose pages stay
 * touched until it is trimmed: every fresh page costs a fault and is cleared before it is
 * written.  Thread-safe.
 */

struct buffer {
	uint8_t *data;
	size_t cap; /* usable bytes, at least as many as requested */
};

/* Bytes of the largest room, and of a unit of it; the largest block takes 1/ROOM_SHARE of it. */
enum { ROOM = 28 << 20, ROOM_UNIT = 128 << 10, ROOM_SHARE = 4 };

struct buffers {
	size_t block_max;     /* size of the largest block in the room */
	pthread_mutex_t lock; /* guards everything below */
	uint8_t *room;        /* NULL: none */
	unsigned n_units;
	bool used[ROOM / ROOM_UNIT];
};

/* SIZE: bytes that the room may have, of which no more than ROOM are used. */
void buffers_init(struct buffers *b, uint64_t size);
/* All blocks were returned. */
void buffers_fini(struct buffers *b);

/* A block of SIZE bytes or more; false: out of memory. */
bool buffers_get(struct buffers *b, uint64_t size, struct buffer *out);

/* Return a block.  data NULL is fine. */
void buffers_put(struct buffers *b, struct buffer block);

/* Return the unused pages of the room to the system. */
void buffers_trim(struct buffers *b);

/* --- pieces.c ------------------------------------------------------------------------- */

/*
 * Pieces of decoded bytes and the memory they share with passes.  Decodes nothing itself.
 *
 * A new piece is admitted, which charges its memory to the budget, or queued until it can
 * be admitted.  Its decoder and each request that copies from it pin it.  When the last
 * pin goes the piece is kept as long as budget and time allow; then it is freed.
 *
 * One lock guards everything; pieces_enter takes it.  Any thread may call; it must hold
 * the lock, except for calls whose comment says otherwise.
 */

/*
 * A decoder of an entry that is too large to be held decoded.  Such an entry can only be
 * decoded from its start, so a pass over it rests where it is until bytes behind that place
 * are wanted; bytes before that place need another pass.  A busy pass belongs to the thread
 * that runs it.
 */
struct pass {
	struct pass *next;
	uint64_t entry;            /* serial of the origin, number of the entry */
	struct origin *origin;     /* with a reference */
	struct kp_reader *decoder; /* NULL: not begun */
	uint64_t window;           /* the widest window it may use */
	uint64_t at;               /* number of the segment it decodes next */
	bool busy;
	bool ended; /* of no more use: freed as soon as it is not busy */
	time_t used;
};

/*
 * The number of entries that are remembered because their passes were dropped early: a
 * new pass over one of them is a restart.
 */
#define PASSES_DROPPED 16

struct passes {
	struct pass *first; /* most recently used first */
	uint64_t bytes;     /* memory of all passes */
	uint64_t begun, restarts;
	uint64_t dropped[PASSES_DROPPED];
	unsigned n_dropped;
};

/* Bytes of memory that a pass with WINDOW takes. */
uint64_t pass_cost(uint64_t window);

/*
 * The pass over ENTRY, busy or resting as BUSY says, that is nearest to segment NUMBER
 * and not behind it; or NULL.
 */
struct pass *passes_nearest(const struct passes *ps, uint64_t entry, uint64_t number,
			    bool busy);

/* True if ENTRY has a pass. */
bool passes_have(const struct passes *ps, uint64_t entry);

/*
 * The largest size in bytes at which the first reader decodes a piece itself, which is
 * faster than waking another thread.  Such a piece is not kept once it was served whole,
 * because it is cheap to decode again.
 */
#define INLINE_MAX (256 << 10)
/*
 * The most bytes that are decoded and not read yet in a row of entries, and the least budget
 * with which anything is decoded ahead.
 */
#define AHEAD_MAX (12 << 20)
#define AHEAD_BUDGET (64 << 20)
#define BUCKETS_LOG2 12

struct request;

enum piece_kind {
	PIECE_WHOLE, /* all of an entry */
	PIECE_CHUNK, /* a chunk of a chunked entry */
	PIECE_PLAIN, /* a part of an entry that can be read alone: of a shared archive, or
			  stored without compression */
	PIECE_SEGMENT, /* a part of an entry that only a pass decodes */
};

struct piece {
	struct piece *same_bucket;
	struct piece_list *list; /* the list it is in, or NULL */
	struct piece *prev, *next;
	bool failed; /* in no bucket; freed when the last pin goes */
	bool charged;
	/* Bytes of its entry to decode ahead; 0: a request for the piece came. */
	uint64_t ahead;
	bool yielded;   /* its decoder leaves it, because something is queued */
	uint64_t entry; /* serial of the origin, number of the entry */
	uint64_t unit;  /* bytes of each piece of the entry but the last */
	uint64_t number;
	struct origin *origin; /* the caller's; with a reference until it is decoded */
	enum piece_kind kind;
	uint64_t size, ready, served; /* bytes; served counts repeats */
	uint64_t beside; /* bytes that its decoder holds, until it is decoded */
	struct buffer buffer;
	unsigned pins; /* its decoder, and requests that copy from it */
	time_t used;
	struct request *parked; /* the caller's */

	/* segments only */
	uint64_t window;   /* bytes of window that a pass needs */
	struct pass *pass; /* the pass, busy, that is to decode the segment */
};

struct piece_list {
	struct piece *first, *last;
	size_t length;
};

struct pieces {
	uint64_t most;           /* the budget when there is no memory pressure */
	_Atomic uint64_t budget; /* the present one; written with the lock */
	struct executor
		*executor; /* wakes those that wait for a piece, or for one that rests */
	pthread_mutex_t lock; /* guards everything below, and the executor's `stopped` */
	bool starved;    /* the head of the queue waits for memory; no other may pass */
	unsigned active; /* pieces with pins: their memory cannot be freed */
	uint64_t held;   /* bytes that are charged */
	uint64_t held_most;                /* the maximum of pieces_held so far */
	uint64_t n_crowded_out, n_expired; /* dropped pieces, by reason */
	struct piece *buckets[1 << BUCKETS_LOG2];
	struct piece_list queue;
	struct piece_list ahead;  /* pieces that nobody asked for: for an idle decoder */
	struct piece_list joined; /* segments that wait for a busy pass to reach them */
	struct piece_list spent, rested; /* unused pieces, least recently used first */
	uint64_t spent_bytes;
	struct passes passes;
	struct piece *dead; /* to be freed when the lock is released */
	struct pass *dead_passes;
	struct buffers buffers;   /* has its own lock */
	struct decoders decoders; /* has its own lock */
	bool keeping;             /* `buffers` and `decoders` may keep something */
	atomic_uint freeing;      /* threads that may still give them something */
	time_t decoded;           /* when the last decode ended */
};

/*
 * Without the lock.  Up to 14 MB more than the budget, or what the decoder of one piece
 * holds, are used where nothing could be decoded otherwise.  EXECUTOR is borrowed.
 */
void pieces_init(struct pieces *ps, uint64_t budget, struct executor *executor);

/* Without the lock: free all pieces.  No thread may be inside any more. */
void pieces_fini(struct pieces *ps);

/* Take and release the lock; releasing it frees the dead pieces and passes. */
void pieces_enter(struct pieces *ps);
void pieces_leave(struct pieces *ps);

/* Bytes of memory in use, also by decoded blocks of shared archives. */
uint64_t pieces_held(struct pieces *ps);

/* The size of the largest piece that leaves room for other pieces.  No lock needed. */
uint64_t pieces_fair(const struct pieces *ps);

/*
 * True if a piece of SIZE bytes finds room only by dropping pieces that have readers in
 * the middle of them.  Those readers would have the pieces decoded again, which would
 * drop the new piece in turn.
 */
bool pieces_is_crowded(const struct pieces *ps, uint64_t size);

/*
 * True if a pass with WINDOW takes so little of the budget that readers of many entries can
 * have one each.
 */
bool pieces_may_begin(const struct pieces *ps, uint64_t window);

/* The largest window of a pass.  No lock needed. */
uint64_t pieces_window(const struct pieces *ps);

/* NULL: there is no such piece. */
struct piece *pieces_find(const struct pieces *ps, uint64_t entry, uint64_t unit,
			  uint64_t number);

/* A new piece, neither admitted nor queued, that pieces_find finds; NULL: no memory. */
struct piece *pieces_add(struct pieces *ps, uint64_t entry, uint64_t unit,
			 uint64_t number, uint64_t size);

/* Charge P and pin it for its decoder.  false: no room, or other pieces wait for room. */
bool pieces_admit(struct pieces *ps, struct piece *p);

/*
 * A new, admitted piece for which no request exists, if SIZE bytes are spare: free, or taken
 * only by pieces that were served whole; else NULL.
 */
struct piece *pieces_add_spare(struct pieces *ps, uint64_t entry, uint64_t unit,
			       uint64_t number, uint64_t size);

/* Let P, which was not admitted, wait for pieces_take. */
void pieces_queue(struct pieces *ps, struct piece *p);

/*
 * True if nothing is queued, and BYTES more would leave half of the budget free, which has at
 * least AHEAD_BUDGET bytes.
 */
bool pieces_are_idle(const struct pieces *ps, uint64_t bytes);

/*
 * Let P, which was not admitted, be decoded when nothing is queued, if half of the budget
 * stays free then; else P is dropped.  P is dropped earlier if many others come after it.
 */
void pieces_queue_ahead(struct pieces *ps, struct piece *p);

/*
 * A request came for P.  True if P waited to be decoded ahead: now it is neither admitted nor
 * queued, like a new piece.
 */
bool pieces_want(struct pieces *ps, struct piece *p);

/*
 * Without the lock: admit a piece of the queue.  *OUT NULL: none can be admitted; this was
 * waited for once.  false: stopped; the queue keeps its pieces.
 */
bool pieces_take(struct pieces *ps, struct piece **out);

/*
 * Admit P if it is still queued; the caller's pass will decode it.  false: it is not
 * queued.
 */
bool pieces_catch(struct pieces *ps, struct piece *p);

/*
 * The decoder of P, which was admitted, is to hold BYTES besides P's: charge them.  false:
 * there is no room, and P was requeued until there is.  What is decoded ahead has room only
 * while half of the budget stays free.
 */
bool pieces_add_beside(struct pieces *ps, struct piece *p, uint64_t bytes);

/* Requeue P, which was admitted, for a pass with another WINDOW if it is a segment. */
void pieces_defer(struct pieces *ps, struct piece *p, uint64_t window);

/*
 * Let PASS, which is busy, rest, or free it if it ended; segments that waited for it are
 * queued.
 */
void pieces_release(struct pieces *ps, struct pass *pass);

/*
 * Without the lock: get memory for the bytes of P, which was admitted.  false: no memory.
 */
bool pieces_back(struct pieces *ps, struct piece *p);

/* End the decode of P, which is still pinned.  If it FAILED, P is not found any more. */
void pieces_done(struct pieces *ps, struct piece *p, bool failed);

void pieces_pin(struct pieces *ps, struct piece *p);
void pieces_unpin(struct pieces *ps, struct piece *p); /* P may die */

/* Without the lock: wait, and free unused memory whose time is over.  false: stopped. */
bool pieces_tend(struct pieces *ps);

/*
 * Without the lock: use PERCENT of the budget; below 100, drop unused pieces and passes.
 */
void pieces_shrink(struct pieces *ps, unsigned percent);

/*
 * Drop the passes over entries of O that rest; those that are busy are dropped
 * afterwards.
 */
void pieces_forget(struct pieces *ps, const struct origin *o);

/* --- a content and its requests -------------------------------------------------------- */

/*
 * Finds rows: entries of an archive that are read one after another, by one reader or by
 * several that share them.  A row goes forward in steps of a constant number of entries: 1
 * for all files of an archive, or the number of architectures for all files of one of
 * them.  It may leave out some, whose bytes the kernel has already.
 *
 * An entry is named by its key, which is greater for a later entry of the same archive.
 * No locks: the caller has one.
 */
#define AHEAD_ROWS 4
#define AHEAD_READ 4096

struct ahead_row {
	uint64_t last;    /* the greatest key that is read; 0: no row */
	uint64_t claimed; /* the greatest key that was queued */
	uint64_t used;    /* when it was used last */
	unsigned step;    /* 0: not known */
	unsigned length;  /* of the row, in entries */
};

struct ahead {
	struct ahead_row rows[AHEAD_ROWS];
	uint64_t uses;
	uint64_t read[AHEAD_READ]; /* keys that were read lately, by their last bits */
};

/* Bytes of a segment. */
#define SEGMENT (512 << 10)

/* Open chunk tables of chunked entries: the most recently used stay open. */
struct chunk_tables {
	pthread_mutex_t lock; /* guards everything below */
	struct table *first;  /* most recently used first */
};

struct content {
	struct content_options options;
	struct chunk_tables tables;
	struct pieces pieces;
	struct ahead ahead;         /* guarded by the lock of pieces */
	struct content_stats stats; /* guarded by the lock of pieces */
	uint32_t *changed; /* serials of origins that were written to; the same lock */
	size_t n_changed, cap_changed;
};

/* One read, on the reader's stack until it has to wait. */
struct request {
	struct request *next;
	content_answer *answer;
	void *token;
	struct origin_entry what; /* with a reference */
	bool parked;              /* on the heap */
	bool waited;              /* some bytes were not decoded yet */
	enum piece_kind kind;
	bool in_parts;   /* parts may be given away: see kp_entry_has_parts */
	uint64_t size;   /* bytes of the file */
	uint64_t unit;   /* bytes of a piece; the last may have fewer */
	uint64_t window; /* segments: the window that decoding needs */
	uint64_t off;
	size_t len, done;
	uint8_t *gathered;   /* the bytes so far, if they come from several pieces */
	struct piece *ready; /* the pinned piece that has the next bytes; or NULL */
};

/* content.c */

/* Serve all of LIST until each is answered or parked.  The caller holds no lock. */
void requests_serve(struct content *c, struct request *list);

/* Unpark the requests that P's ready bytes satisfy.  With the lock of the pieces. */
struct request *requests_take(struct content *c, struct piece *p);

/* Answer a list of requests with the error WHY, and free them. */
void requests_fail(struct request *list, const struct kpackx_error *why);

/* decode.c */

/*
 * Fails if O was written to.  Called before and after a decode: the decoded bytes are good
 * if both calls succeed.
 */
kpack_error_t content_check_intact(struct content *c, struct origin *o,
				   struct kpackx_error *why);

/* Decode P, which was admitted, at once; returns the requests that can continue. */
struct request *decode_now(struct content *c, struct piece *p);

/*
 * Decode P, which pieces_take returned, and if it is a segment some segments around it;
 * requests are served as their bytes come.
 */
void decode_queued(struct content *c, struct piece *p);

/*
 * Count a decode that failed with WHY; CHANGED: because its archive was written to.  With
 * the lock of the pieces.
 */
void count_fault(struct content *c, const struct kpackx_error *why, bool changed);

/* Close the tables that are not in use: those of O, or all (NULL). */
void chunk_tables_close(struct chunk_tables *ts, const struct origin *o);

#endif
