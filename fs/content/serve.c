/* SPDX-License-Identifier: MIT */
#include "serve.h"
#include "counters.h"

/* A new piece for the next bytes of R. */
static struct piece *piece_for(struct decoding *m, const struct request *r)
{
	uint64_t number = request_number(r), left = r->size - number * r->unit;
	struct piece *p = pieces_add(&m->pieces, request_key(r), r->unit, number,
				     left < r->unit ? left : r->unit);

	if (!p)
		return NULL;
	p->kind = r->kind;
	p->window = r->window;
	p->origin = origin_ref(r->what.origin);
	return p;
}

enum claim {
	READY,  /* r->ready has the next bytes */
	DECODE, /* the caller must decode *out; R waits there */
	PARKED, /* R waits for another thread */
	NO_MEMORY,
};

/* Find the piece that has, or will have, the next bytes of R. */
static enum claim claim_piece(struct decoding *m, struct request *r, struct piece **out)
{
	struct piece *p =
		pieces_find(&m->pieces, request_key(r), r->unit, request_number(r));
	bool fresh = !p || pieces_want(&m->pieces, p);

	if (p && request_fits(p, r)) {
		request_ready(&m->pieces, &m->stats, r, p);
		return READY;
	}
	r->waited = true;
	if (!p)
		p = piece_for(m, r);
	if (!p)
		return NO_MEMORY;
	if (fresh) {
		if (p->size <= INLINE_MAX && p->kind != PIECE_SEGMENT && r->in_parts &&
		    pieces_admit(&m->pieces, p)) {
			/* R can stay on the stack: no other thread sees it, and it moves
			 * to the heap if it has to wait again. */
			p->parked = r;
			*out = p;
			return DECODE;
		}
		pieces_queue(&m->pieces, p);
	}
	return request_park(p, r) ? PARKED : NO_MEMORY;
}

void requests_decode_ahead(struct decoding *m, const struct ahead_row *row,
			   struct request *r, uint64_t most)
{
	struct pieces *ps = &m->pieces;
	uint64_t key = request_key(r);
	struct piece *p = NULL;

	pieces_enter(ps);
	while (pieces_find(ps, key, r->unit, request_number(r)))
		r->off += r->unit;
	if (!ps->executor->stopped && r->off < r->size && r->off + r->unit <= most &&
	    !passes_nearest(&ps->passes, key, request_number(r), true) &&
	    ahead_claim(&m->ahead, row, key))
		p = piece_for(m, r);
	if (p) {
		p->ahead = most;
		pieces_queue_ahead(ps, p);
	}
	pieces_leave(ps);
}

/* Advance R by one piece; returns the requests that can continue now. */
static struct request *serve_request(struct decoding *m, struct request *r)
{
	struct piece *p = NULL;
	enum claim claimed = READY;
	bool more;

	if (!r->ready) {
		pieces_enter(&m->pieces);
		claimed = claim_piece(m, r, &p);
		pieces_leave(&m->pieces);
	}
	if (claimed == DECODE)
		return decoding_produce(m, p);
	if (claimed == NO_MEMORY) {
		struct kpackx_error why = {0};

		kp_fail_memory(&why, sizeof(*p), "a read");
		request_fail(r, &why);
	}
	if (claimed != READY)
		return NULL;
	p = r->ready;
	r->ready = NULL;
	more = request_give(r, p);
	pieces_enter(&m->pieces);
	pieces_unpin(&m->pieces, p);
	pieces_leave(&m->pieces);
	return more ? r : NULL;
}

void requests_serve(struct decoding *m, struct request *list)
{
	while (list) {
		struct request *r = list;

		list = r->next;
		r->next = NULL;
		list = requests_join(serve_request(m, r), list);
	}
}
