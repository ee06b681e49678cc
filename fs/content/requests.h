/* SPDX-License-Identifier: MIT */
/*
 * Reads on their way: each goes from piece to piece until it has all its bytes, and is
 * parked at a piece whose bytes are not decoded yet.
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
	bool waited;              /* not all was there */
	enum piece_kind kind;
	uint64_t size;   /* of the file */
	uint64_t unit;   /* bytes of a piece; the last may have fewer */
	uint64_t window; /* segments: what decoding them needs */
	uint64_t off;
	size_t len, done;
	uint8_t *gathered;   /* its bytes, when they come from several pieces */
	struct piece *ready; /* pinned: has the next bytes */
};

/* Put the requests of MORE before LIST. */
struct request *requests_join(struct request *more, struct request *list);

/* Answer with WHY, and free. */
void request_fail(struct request *r, const struct kpackx_error *why);
void requests_fail(struct request *list, const struct kpackx_error *why);

/* Names R's entry for as long as the daemon lives. */
uint64_t request_key(const struct request *r);

/* Which piece has the next bytes of R. */
uint64_t request_number(const struct request *r);

/* Has P, that piece, what R wants of it? */
bool request_fits(const struct piece *p, const struct request *r);

/* P has the next bytes of R: pin it, and count them as served.  With the lock of PS. */
void request_ready(struct pieces *ps, struct content_stats *s, struct request *r,
		   struct piece *p);

/* Unpark the requests that P's ready bytes satisfy.  With the lock of PS. */
struct request *requests_take(struct pieces *ps, struct content_stats *s,
			      struct piece *p);

/*
 * Hand bytes of P, which is pinned and has them, to R.  true: R goes on with another
 * piece; false: it was answered and is gone.
 */
bool request_give(struct request *r, const struct piece *p);

/* Let R, or a copy on the heap, wait for bytes of P.  With the lock; false: no memory. */
bool request_park(struct piece *p, struct request *r);

#endif
