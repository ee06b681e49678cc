/* SPDX-License-Identifier: MIT */
/*
 * A read, from its arrival to its answer: the choice of the pieces in which its entry is
 * decoded, and the way of the request from piece to piece.  A request that finds its bytes
 * decoded is answered at once.  Otherwise it decodes a small piece itself, and is parked
 * at a larger one, which it queues for decode.c.
 */
#include "content.h"
#include <malloc.h>
#include <stdlib.h>
#include "core/archive/entry.h"
#include "core/base/bounds.h"
#include "core/base/alloc.h"
#include "internal.h"

/*
 * Bytes of a piece of an entry that is too large to be held, and stored without
 * compression.
 */
#define PLAIN (256 << 10)

/*
 * Bytes of a piece of an entry of a shared archive that has more than SHARED_WHOLE bytes:
 * few, so that few blocks are decoded for them.
 */
#define SHARED (64 << 10)
#define SHARED_WHOLE (128 << 10)

/*
 * Where such pieces go to more blocks than that each, pieces are as large as a block, and
 * decoded by a thread that answers nobody else: each block is decoded for more bytes.
 */
#define SHARED_VISITS 4

/*
 * An entry may be cut although it fits the budget, if it has at least LARGE bytes; for want
 * of room, only if it has at least 1/LARGE_SHARE of the budget.
 */
#define LARGE (4 << 20)
#define LARGE_SHARE 16

/*
 * The most entries that are decoded ahead of a row; and the bytes of the smallest, because it
 * takes longer to wake a thread than to decode an even smaller one.
 */
#define AHEAD_ENTRIES 16
#define AHEAD_LEAST (32 << 10)

/* The entries that are to be decoded ahead are chosen anew after so many bytes. */
#define AHEAD_STEP (1 << 20)

/* The most segments that a reader in order skips. */
#define SKIPPED 8

/* --- requests ------------------------------------------------------------------------- */

/* The key of R's entry, unique during the life of the daemon. */
static uint64_t request_key(const struct request *r)
{
	return (uint64_t)r->what.origin->serial << 32 | r->what.entry;
}

/* The number of the piece that has the next bytes of R. */
static uint64_t request_number(const struct request *r)
{
	return (r->off + r->done) / r->unit;
}

/* The offset in its piece of the next byte of R. */
static uint64_t next_start(const struct request *r)
{
	return (r->off + r->done) % r->unit;
}

/* How many bytes R wants there. */
static size_t next_len(const struct request *r, const struct piece *p)
{
	uint64_t left = p->size - next_start(r);

	return left < r->len - r->done ? (size_t)left : r->len - r->done;
}

/* Answer R with SIZE bytes at DATA, or with the error WHY, and free it. */
static void request_end(struct request *r, const void *data, size_t size,
			const struct kpackx_error *why)
{
	r->answer(r->token, data, size, why);
	free(r->gathered);
	origin_unref(r->what.origin);
	if (r->parked)
		free(r);
}

void requests_fail(struct request *list, const struct kpackx_error *why)
{
	struct request *next;

	for (; list; list = next) {
		next = list->next;
		request_end(list, NULL, 0, why);
	}
}

/* True if P, the piece with the next bytes of R, has decoded those that R wants. */
static bool request_fits(const struct piece *p, const struct request *r)
{
	return p->ready >= next_start(r) + next_len(r, p);
}

/*
 * P has the next bytes of R: pin P, and count the bytes as served.  With the lock of the
 * pieces.
 */
static void request_ready(struct content *c, struct request *r, struct piece *p)
{
	size_t n = next_len(r, p);
	bool last = r->done + n == r->len;

	pieces_pin(&c->pieces, p);
	p->served += n;
	r->ready = p;
	c->stats.bytes_served += n;
	c->stats.reads += last;
	c->stats.hits += last && !r->waited;
}

struct request *requests_take(struct content *c, struct piece *p)
{
	struct request *taken = NULL, **at = &p->parked;

	while (*at) {
		struct request *r = *at;

		if (!request_fits(p, r)) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		r->next = taken;
		request_ready(c, r, p);
		taken = r;
	}
	return taken;
}

/* --- from piece to piece -------------------------------------------------------------- */

/* A new piece for the next bytes of R.  NULL: no memory. */
static struct piece *piece_for(struct content *c, const struct request *r)
{
	uint64_t number = request_number(r), left = r->size - number * r->unit;
	struct piece *p = pieces_add(&c->pieces, request_key(r), r->unit, number,
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
static enum claim claim_piece(struct content *c, struct request *r, struct piece **out)
{
	struct pieces *ps = &c->pieces;
	struct piece *p = pieces_find(ps, request_key(r), r->unit, request_number(r));
	bool fresh = !p || pieces_want(ps, p);

	if (p && request_fits(p, r)) {
		request_ready(c, r, p);
		return READY;
	}
	r->waited = true;
	if (!p)
		p = piece_for(c, r);
	if (!p)
		return NO_MEMORY;
	if (fresh) {
		if (p->size <= INLINE_MAX && p->kind != PIECE_SEGMENT && r->in_parts &&
		    pieces_admit(ps, p)) {
			/* R can stay on the stack: no other thread sees it, and it moves
			 * to the heap if it has to wait again. */
			p->parked = r;
			*out = p;
			return DECODE;
		}
		pieces_queue(ps, p);
	}
	if (!r->parked) {
		struct request *heap = malloc(sizeof(*heap));

		if (!heap)
			return NO_MEMORY;
		*heap = *r;
		heap->parked = true;
		r = heap;
	}
	r->next = p->parked;
	p->parked = r;
	return PARKED;
}

/* Advance R by one piece; returns the requests that can continue now. */
static struct request *serve_request(struct content *c, struct request *r)
{
	struct pieces *ps = &c->pieces;
	struct kpackx_error why = {0};
	enum claim claimed = READY;
	struct piece *p = NULL;
	const uint8_t *from;
	bool more = false; /* whether R needs another piece next; else it is answered */
	size_t n;

	if (!r->ready) {
		pieces_enter(ps);
		claimed = claim_piece(c, r, &p);
		pieces_leave(ps);
	}
	switch (claimed) {
	case DECODE:
		return decode_now(c, p);
	case PARKED:
		return NULL;
	case NO_MEMORY:
		kp_fail_memory(&why, sizeof(*p), "a read");
		request_end(r, NULL, 0, &why);
		return NULL;
	case READY:
		break;
	}
	p = r->ready;
	r->ready = NULL;
	/* P is pinned, and has the next bytes; a reply of P alone needs no copy */
	from = p->buffer.data + next_start(r);
	n = next_len(r, p);
	if (n == r->len) {
		request_end(r, from, n, NULL);
	} else if (!r->gathered && !(r->gathered = malloc(r->len))) {
		kp_fail_memory(&why, r->len, "a read");
		request_end(r, NULL, 0, &why);
	} else {
		memcpy(r->gathered + r->done, from, n);
		r->done += n;
		more = r->done < r->len;
		if (!more)
			request_end(r, r->gathered, r->len, NULL);
	}
	pieces_enter(ps);
	pieces_unpin(ps, p);
	pieces_leave(ps);
	return more ? r : NULL;
}

void requests_serve(struct content *c, struct request *list)
{
	while (list) {
		struct request *r = list, *more, **end = &more;

		list = r->next;
		r->next = NULL;
		more = serve_request(c, r);
		while (*end)
			end = &(*end)->next;
		*end = list;
		list = more;
	}
}

/* --- the pieces of an entry ----------------------------------------------------------- */

/* Let R's entry, of FORM, be decoded in small pieces. */
static void cut_entry(struct request *r, enum kp_form form)
{
	if (form == KP_FORM_PLAIN) {
		r->kind = PIECE_PLAIN;
		r->unit = PLAIN;
	} else {
		r->kind = PIECE_SEGMENT;
		r->unit = SEGMENT;
	}
}

/* True if R's first byte is in a piece of UNIT bytes that is decoded, or will be. */
static bool is_in_piece(struct content *c, struct request *r, uint64_t unit)
{
	const struct piece *p;

	pieces_enter(&c->pieces);
	p = pieces_find(&c->pieces, request_key(r), unit, r->off / unit);
	if (p)
		r->window = p->window;
	pieces_leave(&c->pieces);
	return p;
}

/*
 * Choose the kind and size of the pieces in which R's entry, of FORM, is decoded.  UNIT: the bytes
 * of its chunk or block.
 */
static void shape_request(struct content *c, struct request *r, enum kp_form form,
			  uint64_t unit)
{
	struct kpack_archive *a = r->what.origin->archive;
	bool chunk = form == KP_FORM_CHUNKS, fits, in_order;
	uint64_t key = request_key(r), number = r->off / SEGMENT;
	struct pieces *ps = &c->pieces;
	const struct pass *busy, *idle;

	r->in_parts = r->size <= INLINE_MAX || kp_entry_has_parts(a, r->what.entry);
	if (r->size > SHARED_WHOLE && form == KP_FORM_BLOCKS) {
		/* small pieces, unless blocks are so large that too many reads need the same one */
		uint64_t begin = r->off / SHARED * SHARED, left = r->size - begin;
		uint64_t pieces =
			(r->off + (r->len ? r->len : 1) - begin + SHARED - 1) / SHARED;
		uint64_t n = pieces * SHARED < left ? pieces * SHARED : left;

		r->kind = PIECE_PLAIN;
		r->unit = unit <= SHARED || kp_entry_visits(a, r->what.entry, begin, n) <=
						    SHARED_VISITS * pieces
				  ? SHARED
				  : unit;
		return;
	}
	r->kind = chunk ? PIECE_CHUNK : PIECE_WHOLE;
	r->unit = chunk ? unit : r->size;
	fits = (r->unit < r->size ? r->unit : r->size) <= pieces_fair(ps);
	if (fits && (chunk || r->size < LARGE || is_in_piece(c, r, r->size)))
		return;
	if (!chunk && is_in_piece(c, r, SEGMENT)) {
		r->kind = PIECE_SEGMENT;
		r->unit = SEGMENT;
		return;
	}
	if (kp_entry_window(a, r->what.entry, &r->window, NULL))
		r->window = 0; /* the decoder finds out what is wrong */
	if (!fits) {
		cut_entry(r, form);
		return;
	}
	/*
	 * An entry that fits is cut only if a pass takes less than half of its memory, and no
	 * other decode must come first: where it is read in order, or where there is room
	 * for it only by dropping pieces with readers in them.
	 */
	if (!r->in_parts || pass_cost(r->window) >= r->size / 2)
		return;
	/*
	 * It is read in order from its start, or where a pass has been or will soon be.  When a
	 * reader then jumps, the entry is decoded as a whole.
	 */
	pieces_enter(ps);
	busy = passes_nearest(&ps->passes, key, number, true);
	idle = passes_nearest(&ps->passes, key, number, false);
	in_order = (busy && number - busy->at <= SKIPPED) ||
		   (idle && number - idle->at <= SKIPPED);
	for (uint64_t i = 0; !in_order && i <= number && i <= SKIPPED; i++) {
		const struct piece *p = pieces_find(ps, key, SEGMENT, number - i);

		in_order = p && (i == 0 || p->ready < p->size);
	}
	if (in_order || (number == 0 && !passes_have(&ps->passes, key) &&
			 pieces_may_begin(ps, r->window))) {
		r->kind = PIECE_SEGMENT;
		r->unit = SEGMENT;
	} else if (r->size >= pieces_fair(ps) / LARGE_SHARE &&
		   pieces_is_crowded(ps, r->size)) {
		cut_entry(r, form);
	}
	pieces_leave(ps);
}

/*
 * Fail if R cannot be decoded: its entry, of FORM, has chunks of an impossible size UNIT, or its
 * window exceeds the budget.
 */
static kpack_error_t check_shape(struct content *c, const struct request *r,
				 enum kp_form form, uint64_t unit,
				 struct kpackx_error *why)
{
	uint64_t most = pieces_window(&c->pieces);

	/* also if it is decoded in other pieces: then nobody else looks at the seek table */
	if (form == KP_FORM_CHUNKS && (unit < KP_CHUNK_MIN || unit > KP_CHUNK_MAX))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "chunk size %llu",
			       (unsigned long long)unit);
	if (r->kind != PIECE_SEGMENT || r->window <= most)
		return KPACK_SUCCESS;
	/* The window may be garbage, if the archive was changed: report that instead. */
	KP_TRY(content_check_intact(c, r->what.origin, why));
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
		       "frame has a window of %llu bytes, cache_size allows %llu",
		       (unsigned long long)r->window, (unsigned long long)most);
}

/* --- rows of entries -------------------------------------------------------------------- */

/*
 * Four rows are followed at a time.  Three entries in equal steps make a row; a key that
 * fits none begins one, in place of the row that was not used for the longest time.
 */

/* A row of fewer entries may be chance. */
#define LONG 3

/* The greatest step, and the most steps between two reads that belong to the same row. */
#define STEP_MAX 64
#define STEPS 8

/* Whether KEY lies in ROW, near the entry that is read last. */
static bool is_in_row(const struct ahead_row *row, uint64_t key)
{
	uint64_t distance = key > row->last ? key - row->last : row->last - key;

	if (!row->last)
		return false;
	if (!row->step)
		return key == row->last || (key > row->last && distance <= STEP_MAX);
	return distance % row->step == 0 && distance / row->step <= STEPS;
}

/*
 * The entry KEY is read; BEGINS: from its start.  True if it is in a row, of which *OUT is a
 * copy; false: in none, or in one that is still so short that it may be chance.
 */
static bool ahead_note(struct ahead *a, uint64_t key, bool begins, struct ahead_row *out)
{
	struct ahead_row *row = a->rows, *oldest = a->rows;

	a->read[key % AHEAD_READ] = key;
	for (; row < a->rows + AHEAD_ROWS && !is_in_row(row, key); row++)
		if (row->used < oldest->used)
			oldest = row;
	if (row == a->rows + AHEAD_ROWS) {
		if (begins) /* a row, in place of the one that was not used longest */
			*oldest = (struct ahead_row){
				.last = key, .used = ++a->uses, .length = 1};
		return false;
	}
	row->used = ++a->uses;
	if (key > row->last && begins) {
		if (!row->step)
			row->step = (unsigned)(key - row->last);
		row->last = key;
		row->length++;
	}
	*out = *row;
	return row->length >= LONG;
}

/* --- decoding ahead ------------------------------------------------------------------- */

/*
 * LEFT bytes of WHAT, which is in ROW, are not read yet: decode entries behind the last of
 * ROW, until AHEAD_MAX bytes are decoded and not read.  Of each entry, the first piece that does
 * not exist is queued before a request for it comes; if it is a segment, its pass decodes those
 * behind it.  A failure is not reported, because a request for those bytes will fail in the same
 * way.
 */
static void decode_ahead(struct content *c, const struct ahead_row *row,
			 struct origin_entry what, uint64_t left)
{
	const struct kpack_archive *a = what.origin->archive;
	size_t count = kp_archive_entry_count(a);
	struct pieces *ps = &c->pieces;

	what.entry = (uint32_t)row->last;
	for (unsigned i = 0; i < AHEAD_ENTRIES && left < AHEAD_MAX; i++) {
		struct ahead_row *now = c->ahead.rows, *end = now + AHEAD_ROWS;
		uint64_t unit, key, most = AHEAD_MAX - left;
		struct kpackx_error why = {0};
		struct kp_entry_info info;
		struct piece *p = NULL;
		enum kp_form form;
		struct request r;

		what.entry += row->step;
		if (what.entry >= count)
			return;
		form = kp_entry_form(a, what.entry, &unit);
		if (form == KP_FORM_CHUNKS)
			continue;
		kp_archive_entry(a, what.entry, &info);
		r = (struct request){.what = what, .size = info.size};
		key = request_key(&r);
		if (key < row->claimed || r.size < AHEAD_LEAST) {
			left += info.size;
			continue;
		}
		shape_request(c, &r, form, unit);
		if (r.kind == PIECE_PLAIN || check_shape(c, &r, form, unit, &why))
			continue;
		left += info.size;

		pieces_enter(ps);
		while (pieces_find(ps, key, r.unit, request_number(&r)))
			r.off += r.unit;
		while (now < end && now->last != row->last)
			now++;
		/* Only if the row is still where it was, and the entry was not claimed before, and
		 * not read lately: then the kernel has its bytes.  The last one that was claimed
		 * may be claimed again. */
		if (!ps->executor->stopped && r.off < r.size && r.off + r.unit <= most &&
		    !passes_nearest(&ps->passes, key, request_number(&r), true) &&
		    now < end && key >= now->claimed &&
		    c->ahead.read[key % AHEAD_READ] != key) {
			now->claimed = key;
			p = piece_for(c, &r);
		}
		if (p) {
			p->ahead = most;
			pieces_queue_ahead(ps, p);
		}
		pieces_leave(ps);
	}
}

/* --- reads ---------------------------------------------------------------------------- */

void content_read(struct content *c, struct origin_entry what, uint64_t off, size_t len,
		  content_answer *answer, void *token)
{
	struct request r = {.answer = answer, .token = token, .what = what, .off = off};
	struct kpackx_error why = {0};
	struct kp_entry_info info;
	struct ahead_row row = {0};
	enum kp_form form;
	uint64_t unit;
	bool in_row = false;

	kp_archive_entry(what.origin->archive, what.entry, &info);
	if (off >= info.size || len == 0) {
		answer(token, NULL, 0, NULL);
		return;
	}
	r.size = info.size;
	r.len = len < info.size - off ? len : (size_t)(info.size - off);
	form = kp_entry_form(what.origin->archive, what.entry, &unit);
	shape_request(c, &r, form, unit);
	if (check_shape(c, &r, form, unit, &why)) {
		pieces_enter(&c->pieces);
		count_fault(c, &why, atomic_load(&what.origin->changed));
		pieces_leave(&c->pieces);
		c->options.failure(c->options.user, what, &why);
		answer(token, NULL, 0, &why);
		return;
	}
	if (c->options.ahead && off % AHEAD_STEP == 0) {
		pieces_enter(&c->pieces);
		in_row = ahead_note(&c->ahead, request_key(&r), off == 0, &row);
		pieces_leave(&c->pieces);
	}
	origin_ref(what.origin);
	requests_serve(c, &r);
	if (in_row)
		decode_ahead(c, &row, what, info.size - off);
}

void content_shrink(struct content *c, unsigned percent)
{
	pieces_shrink(&c->pieces, percent);
	if (percent < 100)
		malloc_trim(0);
}

void content_stats(struct content *c, struct content_stats *out)
{
	pieces_enter(&c->pieces);
	*out = c->stats;
	out->crowded_out = c->pieces.n_crowded_out;
	out->expired = c->pieces.n_expired;
	out->passes = c->pieces.passes.begun;
	out->restarts = c->pieces.passes.restarts;
	out->held = pieces_held(&c->pieces);
	out->held_most = c->pieces.held_most;
	out->budget = c->pieces.budget;
	pieces_leave(&c->pieces);
}

void content_forget(struct content *c, const struct origin *o)
{
	chunk_tables_close(&c->tables, o);
	pieces_enter(&c->pieces);
	pieces_forget(&c->pieces, o);
	for (size_t i = 0; i < c->n_changed; i++)
		if (c->changed[i] == o->serial)
			c->changed[i--] = c->changed[--c->n_changed];
	pieces_leave(&c->pieces);
}

/* --- the content ---------------------------------------------------------------------- */

static bool run_job(void *arg, enum executor_job job)
{
	struct content *c = arg;
	struct piece *p;

	if (job == JOB_TEND)
		return pieces_tend(&c->pieces);
	if (!pieces_take(&c->pieces, &p))
		return false;
	if (p)
		decode_queued(c, p);
	return true;
}

kpack_error_t content_new(const struct content_options *options, struct content **out,
			  struct kpackx_error *why)
{
	struct executor *e = options->executor;
	struct content *c = calloc(1, sizeof(*c));

	if (!c || !e) {
		pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

		if (e)
			e->end(e, &lock);
		free(c);
		return kp_fail_memory(why, sizeof(*c), "decoders");
	}
	c->options = *options;
	pthread_mutex_init(&c->tables.lock, NULL);
	pieces_init(&c->pieces, options->budget, e);
	if (!e->start(e, run_job, c)) {
		content_free(c);
		return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY, "cannot start threads");
	}
	*out = c;
	return KPACK_SUCCESS;
}

void content_free(struct content *c)
{
	struct kpackx_error why = {0};

	if (!c)
		return;
	c->options.executor->end(c->options.executor, &c->pieces.lock);
	kp_fail(&why, KPACK_ERROR_IO_ERROR, "unmounted");
	/* All decodes have ended: each request that still waits is parked at a queued
	 * piece. */
	for (struct piece *p = c->pieces.queue.first; p; p = p->next) {
		requests_fail(p->parked, &why);
		origin_unref(p->origin);
	}
	for (struct piece *p = c->pieces.ahead.first; p; p = p->next)
		origin_unref(p->origin);
	pieces_fini(&c->pieces);
	chunk_tables_close(&c->tables, NULL);
	pthread_mutex_destroy(&c->tables.lock);
	free(c->changed);
	free(c);
}
