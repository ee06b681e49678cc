/* SPDX-License-Identifier: MIT */
/*
 * Unanswered reads: each request goes from piece to piece until it has all its bytes, and
 * is parked at a piece whose bytes are not decoded yet.
 */
#ifndef FS_CONTENT_REQUESTS_H
#define FS_CONTENT_REQUESTS_H

#include "content.h"
#include "pieces.h"

/* One read, on the reader's stack until it has to wait. */
struct request {
	struct request *next;
	content_answer *answer;
	void *token;
	struct origin_entry what; /* with a reference */
	bool parked;              /* on the heap */
	bool waited;              /* some bytes were not decoded yet */
	enum piece_kind kind;
	bool in_parts;   /* parts may be given away: see kp_archive_has_parts */
	uint64_t size;   /* bytes of the file */
	uint64_t unit;   /* bytes of a piece; the last may have fewer */
	uint64_t window; /* segments: the window that decoding needs */
	uint64_t off;
	size_t len, done;
	uint8_t *gathered;   /* the bytes so far, if they come from several pieces */
	struct piece *ready; /* the pinned piece that has the next bytes; or NULL */
};

/* Put the requests of MORE before LIST. */
struct request *requests_join(struct request *more, struct request *list);

/* Answer a request, or a list of requests, with the error WHY, and free it. */
void request_fail(struct request *r, const struct kpackx_error *why);
void requests_fail(struct request *list, const struct kpackx_error *why);

/* The key of R's entry, unique during the life of the daemon. */
uint64_t request_key(const struct request *r);

/* The number of the piece that has the next bytes of R. */
uint64_t request_number(const struct request *r);

/* True if P, the piece with the next bytes of R, has decoded those that R wants. */
bool request_fits(const struct piece *p, const struct request *r);

/*
 * P has the next bytes of R: pin P, and count the bytes as served.  With the lock of PS.
 */
void request_ready(struct pieces *ps, struct content_stats *s, struct request *r,
		   struct piece *p);

/* Unpark the requests that P's ready bytes satisfy.  With the lock of PS. */
struct request *requests_take(struct pieces *ps, struct content_stats *s,
			      struct piece *p);

/*
 * Give R its next bytes from P, which is pinned and has them.  true: R needs another
 * piece next; false: R was answered and freed.
 */
bool request_give(struct request *r, const struct piece *p);

/*
 * Let R, or a copy of it on the heap, wait for bytes of P.  With the lock.  false: no
 * memory.
 */
bool request_park(struct piece *p, struct request *r);

#endif
