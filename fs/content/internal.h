/* SPDX-License-Identifier: MIT */
/*
 * A content and its requests, between content.c, which takes a read from its arrival to its
 * answer, and decode.c, which decodes the pieces that it waits for.
 */
#ifndef FS_CONTENT_INTERNAL_H
#define FS_CONTENT_INTERNAL_H

#include "ahead.h"
#include "content.h"
#include "pieces.h"

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
