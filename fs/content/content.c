/* SPDX-License-Identifier: MIT */
#include "content.h"
#include <malloc.h>
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/archive/shared.h"
#include "ahead.h"
#include "drive.h"
#include "serve.h"
#include "core/base/alloc.h"
#include "requests.h"
#include "counters.h"

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

struct content {
	struct content_options options;
	struct decoding decoding;
};

void content_read(struct content *c, struct origin_entry what, uint64_t off, size_t len,
		  void *token)
{
	content_read_to(c, what, off, len, c->options.answer, token);
}

/* Let R's entry be decoded in small pieces. */
static void cut_entry(struct request *r)
{
	if (kp_archive_is_plain(r->what.origin->archive)) {
		r->kind = PIECE_PLAIN;
		r->unit = PLAIN;
	} else {
		r->kind = PIECE_SEGMENT;
		r->unit = SEGMENT;
	}
}

/*
 * True if R's entry is read in order: from its start, or where a pass has been or will soon
 * be.  When a reader then jumps, the entry is decoded as a whole.
 */
static bool is_in_order(const struct pieces *ps, const struct request *r)
{
	uint64_t key = request_key(r), number = r->off / SEGMENT;
	const struct pass *busy = passes_nearest(&ps->passes, key, number, true);
	const struct pass *idle = passes_nearest(&ps->passes, key, number, false);

	if ((busy && number - busy->at <= SKIPPED) ||
	    (idle && number - idle->at <= SKIPPED))
		return true;
	for (uint64_t i = 0; i <= number && i <= SKIPPED; i++) {
		const struct piece *p = pieces_find(ps, key, SEGMENT, number - i);

		if (p && (i == 0 || p->ready < p->size))
			return true;
	}
	return number == 0 && !passes_have(&ps->passes, key) &&
	       pieces_may_begin(ps, r->window);
}

/* True if there is no room for all of R's entry, but for pieces with readers in them. */
static bool is_crowded(const struct pieces *ps, const struct request *r)
{
	return r->size >= pieces_fair(ps) / LARGE_SHARE && pieces_is_crowded(ps, r->size);
}

/* Choose whether R's entry, which fits the budget, is decoded as a whole. */
static void fit_entry(struct content *c, struct request *r)
{
	struct pieces *ps = &c->decoding.pieces;

	pieces_enter(ps);
	if (is_in_order(ps, r)) {
		r->kind = PIECE_SEGMENT;
		r->unit = SEGMENT;
	} else if (is_crowded(ps, r)) {
		cut_entry(r);
	}
	pieces_leave(ps);
}

/* True if R's first byte is in a piece of UNIT bytes that is decoded, or will be. */
static bool is_in_piece(struct content *c, struct request *r, uint64_t unit)
{
	const struct piece *p;

	pieces_enter(&c->decoding.pieces);
	p = pieces_find(&c->decoding.pieces, request_key(r), unit, r->off / unit);
	if (p)
		r->window = p->window;
	pieces_leave(&c->decoding.pieces);
	return p;
}

/* The bytes of a piece of R's entry, which is of the shared archive S. */
static uint64_t shared_unit(const struct kp_shared *s, const struct request *r)
{
	uint64_t begin = r->off / SHARED * SHARED, left = r->size - begin;
	uint64_t pieces = (r->off + (r->len ? r->len : 1) - begin + SHARED - 1) / SHARED;
	uint64_t n = pieces * SHARED < left ? pieces * SHARED : left;
	struct kp_entry_info info;

	kp_archive_entry(r->what.origin->archive, r->what.entry, &info);
	if (kp_shared_block_size(s) <= SHARED ||
	    kp_shared_visits(s, info.ordinal, begin, n) <= SHARED_VISITS * pieces)
		return SHARED;
	return kp_shared_block_size(s);
}

/* Choose the kind and size of the pieces in which R's entry is decoded. */
static void shape_request(struct content *c, struct request *r, uint64_t chunk)
{
	const struct kp_shared *shared = kp_archive_shared(r->what.origin->archive);
	bool fits;

	r->in_parts = r->size <= INLINE_MAX ||
		      kp_archive_has_parts(r->what.origin->archive, r->what.entry);
	if (r->size > SHARED_WHOLE && shared) {
		r->kind = PIECE_PLAIN;
		r->unit = shared_unit(shared, r);
		return;
	}
	r->kind = chunk ? PIECE_CHUNK : PIECE_WHOLE;
	r->unit = chunk ? chunk : r->size;
	fits = (r->unit < r->size ? r->unit : r->size) <=
	       pieces_fair(&c->decoding.pieces);
	if (fits && (chunk || r->size < LARGE || is_in_piece(c, r, r->size)))
		return;
	if (!chunk && is_in_piece(c, r, SEGMENT)) {
		r->kind = PIECE_SEGMENT;
		r->unit = SEGMENT;
		return;
	}
	if (kp_decode_window(r->what.origin->archive, r->what.entry, &r->window, NULL))
		r->window = 0; /* the decoder finds out what is wrong */
	/*
	 * An entry that fits is cut only if a pass takes less than half of its memory, and no
	 * other decode must come first.
	 */
	if (!fits)
		cut_entry(r);
	else if (r->in_parts && pass_cost(r->window) < r->size / 2)
		fit_entry(c, r);
}

/*
 * Fail if R cannot be decoded: its chunk size is invalid, or its window exceeds the
 * budget.
 */
static kpack_error_t check_shape(struct content *c, const struct request *r,
				 uint64_t chunk, struct kpackx_error *why)
{
	uint64_t most = pieces_window(&c->decoding.pieces);

	if (chunk && (chunk < KP_CHUNK_MIN || chunk > KP_CHUNK_MAX))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "chunk size %llu",
			       (unsigned long long)chunk);
	if (r->kind != PIECE_SEGMENT || r->window <= most)
		return KPACK_SUCCESS;
	/* The window may be garbage, if the archive was changed: report that instead. */
	KP_TRY(decoding_check(&c->decoding, r->what.origin, why));
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
		       "frame has a window of %llu bytes, cache_size allows %llu",
		       (unsigned long long)r->window, (unsigned long long)most);
}

static void refuse_request(struct content *c, struct request *r,
			   const struct kpackx_error *why)
{
	pieces_enter(&c->decoding.pieces);
	counters_fault(&c->decoding.stats, why, atomic_load(&r->what.origin->changed));
	pieces_leave(&c->decoding.pieces);
	c->options.failure(c->options.user, r->what, why);
	r->answer(r->token, NULL, 0, why);
}

/* Whether R is in a row, and it is time to choose what is decoded ahead of it. */
static bool find_row(struct content *c, const struct request *r, struct ahead_row *row)
{
	bool found;

	if (!c->options.ahead || r->off % AHEAD_STEP)
		return false;
	pieces_enter(&c->decoding.pieces);
	found = ahead_note(&c->decoding.ahead, request_key(r), r->off == 0, row);
	pieces_leave(&c->decoding.pieces);
	return found;
}

/*
 * Let R's entry, which ROW will come to, be decoded ahead, at most MOST bytes of it.
 * Returns the size of what can be decoded ahead.
 */
static uint64_t decode_entry_ahead(struct content *c, const struct ahead_row *row,
				   struct request *r, uint64_t most)
{
	struct kpackx_error why = {0};
	struct kp_entry_info info;

	kp_archive_entry(r->what.origin->archive, r->what.entry, &info);
	if (kp_archive_decoding_facts(r->what.origin->archive, r->what.entry).chunk)
		return 0;
	r->size = info.size;
	if (request_key(r) < row->claimed || r->size < AHEAD_LEAST)
		return r->size;
	shape_request(c, r, 0);
	if (r->kind == PIECE_PLAIN || check_shape(c, r, 0, &why))
		return 0;
	requests_decode_ahead(&c->decoding, row, r, most);
	return r->size;
}

/*
 * LEFT bytes of WHAT, which is in ROW, are not read yet: decode entries behind the last of
 * ROW, until AHEAD_MAX bytes are decoded and not read.
 */
static void decode_ahead(struct content *c, const struct ahead_row *row,
			 struct origin_entry what, uint64_t left)
{
	size_t count = kp_archive_entry_count(what.origin->archive);

	what.entry = (uint32_t)row->last;
	for (unsigned i = 0; i < AHEAD_ENTRIES && left < AHEAD_MAX; i++) {
		struct request r;

		what.entry += row->step;
		if (what.entry >= count)
			return;
		r = (struct request){.what = what};
		left += decode_entry_ahead(c, row, &r, AHEAD_MAX - left);
	}
}

void content_read_to(struct content *c, struct origin_entry what, uint64_t off,
		     size_t len, content_answer *answer, void *token)
{
	struct request r = {.answer = answer, .token = token, .what = what, .off = off};
	struct kpackx_error why = {0};
	struct kp_entry_info info;
	struct ahead_row row;
	uint64_t chunk;
	bool in_row;

	kp_archive_entry(what.origin->archive, what.entry, &info);
	if (off >= info.size || len == 0) {
		answer(token, NULL, 0, NULL);
		return;
	}
	r.size = info.size;
	r.len = len < info.size - off ? len : (size_t)(info.size - off);
	chunk = kp_archive_decoding_facts(what.origin->archive, what.entry).chunk;
	shape_request(c, &r, chunk);
	if (check_shape(c, &r, chunk, &why)) {
		refuse_request(c, &r, &why);
		return;
	}
	in_row = find_row(c, &r, &row);
	origin_ref(what.origin);
	requests_serve(&c->decoding, &r);
	if (in_row)
		decode_ahead(c, &row, what, info.size - off);
}

void content_shrink(struct content *c, unsigned percent)
{
	pieces_shrink(&c->decoding.pieces, percent);
	if (percent < 100)
		malloc_trim(0);
}

void content_stats(struct content *c, struct content_stats *out)
{
	pieces_enter(&c->decoding.pieces);
	*out = c->decoding.stats;
	out->crowded_out = c->decoding.pieces.n_crowded_out;
	out->expired = c->decoding.pieces.n_expired;
	out->passes = c->decoding.pieces.passes.begun;
	out->restarts = c->decoding.pieces.passes.restarts;
	out->held = pieces_held(&c->decoding.pieces);
	out->held_most = c->decoding.pieces.held_most;
	out->budget = c->decoding.pieces.budget;
	pieces_leave(&c->decoding.pieces);
}

/* Jobs. */

static bool run_job(void *arg, enum executor_job job)
{
	struct decoding *m = &((struct content *)arg)->decoding;
	struct piece *p;

	if (job == JOB_TEND)
		return pieces_tend(&m->pieces);
	if (!pieces_take(&m->pieces, &p))
		return false;
	if (p)
		drive_piece(m, p);
	return true;
}

void content_forget(struct content *c, const struct origin *o)
{
	decoding_forget(&c->decoding, o);
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
	decoding_init(&c->decoding, &c->options);
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
	struct executor *e;

	if (!c)
		return;
	e = c->options.executor;
	e->end(e, &c->decoding.pieces.lock);
	kp_fail(&why, KPACK_ERROR_IO_ERROR, "unmounted");
	/* All decodes have ended: each request that still waits is parked at a queued
	 * piece. */
	for (struct piece *p = c->decoding.pieces.queue.first; p; p = p->next) {
		requests_fail(p->parked, &why);
		origin_unref(p->origin);
	}
	for (struct piece *p = c->decoding.pieces.ahead.first; p; p = p->next)
		origin_unref(p->origin);
	decoding_fini(&c->decoding);
	free(c);
}
