/* SPDX-License-Identifier: MIT */
#include "content.h"
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include "limits.h"
#include "memory.h"
#include "pieces.h"
#include "tables.h"
#include "tally.h"

/* Bytes between two looks at who can be answered. */
#define STEP (256 << 10)

/* Bytes of a piece of an entry that is too large to be held. */
#define SEGMENT (512 << 10)
#define PLAIN (256 << 10)
/* Segments that are kept, if there is room, of those before and behind what is wanted. */
#define KEEP_BEFORE 8
#define KEEP_BEHIND 4

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

struct content {
	struct content_options options;
	struct tables tables;
	struct pieces pieces;
	struct content_stats stats; /* under the lock of pieces, who know the rest */
	uint32_t *changed; /* serial numbers of origins that were written to, the same */
	size_t n_changed, cap_changed;

	unsigned n_threads;
	pthread_t janitor;
	bool has_janitor;
	pthread_t threads[];
};

/* Requests. */

/* Put the requests of MORE before LIST. */
static struct request *joined(struct request *more, struct request *list)
{
	struct request **end = &more;

	while (*end)
		end = &(*end)->next;
	*end = list;
	return more;
}

static void request_free(struct request *r)
{
	free(r->gathered);
	origin_unref(r->what.origin);
	if (r->parked)
		free(r);
}

static void fail(struct request *r, const struct kpackx_error *why)
{
	r->answer(r->token, NULL, 0, why);
	request_free(r);
}

static void fail_all(struct request *list, const struct kpackx_error *why)
{
	struct request *next;

	for (; list; list = next) {
		next = list->next;
		fail(list, why);
	}
}

/* Names an entry for as long as the daemon lives. */
static uint64_t key_of(struct origin_entry what)
{
	return (uint64_t)what.origin->serial << 32 | what.entry;
}

static uint64_t next_number(const struct request *r)
{
	return (r->off + r->done) / r->unit;
}

/* Where in its piece the next byte of R stands, and how many of the piece it wants. */
static uint64_t next_start(const struct request *r)
{
	return (r->off + r->done) % r->unit;
}

static size_t next_len(const struct request *r, const struct piece *p)
{
	uint64_t left = p->size - next_start(r);

	return left < r->len - r->done ? (size_t)left : r->len - r->done;
}

static bool can_serve(const struct piece *p, const struct request *r)
{
	return p->ready >= next_start(r) + next_len(r, p);
}

/* P has the next bytes of R: pin it, and count them as served. */
static void make_ready(struct content *c, struct request *r, struct piece *p)
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

/* Unpark the requests that P's ready bytes satisfy. */
static struct request *take_ready(struct content *c, struct piece *p)
{
	struct request *taken = NULL, **at = &p->parked;

	while (*at) {
		struct request *r = *at;

		if (!can_serve(p, r)) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		r->next = taken;
		make_ready(c, r, p);
		taken = r;
	}
	return taken;
}

/*
 * Hand bytes of P, which is pinned and has them, to R.  true: R goes on with another
 * piece; false: it was answered and is gone.
 */
static bool give(struct request *r, const struct piece *p)
{
	const uint8_t *from = p->buffer.data + next_start(r);
	size_t n = next_len(r, p);

	if (n == r->len) {
		r->answer(r->token, from, n, NULL);
		request_free(r);
		return false;
	}
	if (!r->gathered)
		r->gathered = malloc(r->len);
	if (!r->gathered) {
		struct kpackx_error why = {0};

		kp_fail_memory(&why, r->len, "a read");
		fail(r, &why);
		return false;
	}
	memcpy(r->gathered + r->done, from, n);
	r->done += n;
	if (r->done < r->len)
		return true;
	r->answer(r->token, r->gathered, r->len, NULL);
	request_free(r);
	return false;
}

/* Archives that were written to. */

static bool note_changed(struct content *c, uint32_t serial)
{
	for (size_t i = 0; i < c->n_changed; i++)
		if (c->changed[i] == serial)
			return false;
	if (kp_grow(&c->changed, c->n_changed, &c->cap_changed, sizeof(*c->changed)))
		c->changed[c->n_changed++] = serial;
	return true;
}

static void forget_changed(struct content *c, uint32_t serial)
{
	for (size_t i = 0; i < c->n_changed; i++)
		if (c->changed[i] == serial)
			c->changed[i--] = c->changed[--c->n_changed];
}

/* To be asked before and after a decode: what came between is good if both succeed. */
static kpack_error_t check_intact(struct content *c, struct origin *o,
				  struct kpackx_error *why)
{
	bool first;

	if (origin_intact(o))
		return KPACK_SUCCESS;
	pieces_enter(&c->pieces);
	first = note_changed(c, o->serial);
	pieces_leave(&c->pieces);
	if (first && c->options.changed)
		c->options.changed(c->options.user, o);
	return kp_fail(why, KPACK_ERROR_IO_ERROR, "the archive was changed in place");
}

/* Decoding. */

static void run(struct content *c, struct request *list);

/* What P, not decoded yet, is a piece of. */
static struct origin_entry piece_entry(const struct piece *p)
{
	return (struct origin_entry){p->origin, (size_t)(p->entry & UINT32_MAX)};
}

static kpack_error_t decode_chunk(struct content *c, struct piece *p,
				  struct kpackx_error *why)
{
	struct table *t;
	kpack_error_t err = tables_get(&c->tables, piece_entry(p), &t, why);

	/* Core checked at open that the table agrees with the metadata and the size. */
	if (!err) {
		err = kp_chunks_read(t->chunks, p->number, p->buffer.data, why);
		tables_put(&c->tables, t);
	}
	return err;
}

static kpack_error_t read_plain(struct piece *p, struct origin_entry what,
				struct kpackx_error *why)
{
	size_t got;

	return kp_archive_read_range(what.origin->archive, what.entry,
				     p->number * p->unit, p->buffer.data, (size_t)p->size,
				     &got, why);
}

/* Publish that READY bytes are there and serve who waited for them. */
static kpack_error_t progress(struct content *c, struct piece *p, uint64_t ready,
			      struct kpackx_error *why)
{
	struct request *list;
	bool stop;

	KP_TRY(check_intact(c, p->origin, why));
	pieces_enter(&c->pieces);
	p->ready = ready;
	stop = c->pieces.stop;
	list = take_ready(c, p);
	pieces_leave(&c->pieces);
	run(c, list);
	return stop ? kp_fail(why, KPACK_ERROR_IO_ERROR, "unmounted") : KPACK_SUCCESS;
}

static kpack_error_t decode_stream(struct content *c, struct piece *p,
				   struct origin_entry what, struct kpackx_error *why)
{
	struct kp_stream *s = NULL;
	uint64_t ready = 0;
	kpack_error_t err =
		kp_stream_open(what.origin->archive, what.entry, p->buffer.data, &s, why);

	while (!err && ready < p->size) {
		err = kp_stream_step(s, STEP, &ready, why);
		/* The last bytes are published when the piece is done. */
		if (!err && ready < p->size)
			err = progress(c, p, ready, why);
	}
	kp_stream_close(s);
	return err;
}

static kpack_error_t decode_bytes(struct content *c, struct piece *p,
				  struct kpackx_error *why)
{
	struct origin_entry what = piece_entry(p);

	if (!pieces_back(&c->pieces, p))
		return kp_fail_memory(why, p->size, "decoded bytes");
	if (p->kind == PIECE_CHUNK)
		return decode_chunk(c, p, why);
	if (p->kind == PIECE_PLAIN)
		return read_plain(p, what, why);
	if (p->size > INLINE_MAX)
		return decode_stream(c, p, what, why);
	return kp_archive_read(what.origin->archive, what.entry, p->buffer.data, why);
}

static kpack_error_t decode(struct content *c, struct piece *p, struct kpackx_error *why)
{
	kpack_error_t err, changed;

	KP_TRY(check_intact(c, p->origin, why));
	err = decode_bytes(c, p, why);
	changed = check_intact(c, p->origin, why); /* then that is why it failed */
	return changed ? changed : err;
}

/* A decode of P ended with WHY; who waited for it, and is now to be told so. */
static struct request *give_up(struct content *c, struct piece *p,
			       const struct kpackx_error *why)
{
	struct request *failed = p->parked;

	p->parked = NULL;
	pieces_done(&c->pieces, p, true);
	if (!c->pieces.stop)
		tally_fault(&c->stats, why, atomic_load(&p->origin->changed));
	return failed;
}

/* Not for what fails because all ends. */
static void complain(struct content *c, struct origin_entry what,
		     const struct kpackx_error *why)
{
	bool stop;

	pieces_enter(&c->pieces);
	stop = c->pieces.stop;
	pieces_leave(&c->pieces);
	if (!stop)
		c->options.failure(c->options.user, what, why);
}

/* Decode P, which was admitted; returns the requests that can go on. */
static struct request *produce(struct content *c, struct piece *p)
{
	struct kpackx_error why = {0};
	uint64_t since = tally_now();
	kpack_error_t err = decode(c, p, &why);
	struct origin_entry what = piece_entry(p);
	struct request *failed = NULL, *woken = NULL;

	pieces_enter(&c->pieces);
	if (err) {
		failed = give_up(c, p, &why);
	} else {
		pieces_done(&c->pieces, p, false);
		tally_decode(&c->stats, p->size, since);
		woken = take_ready(c, p);
	}
	p->origin = NULL;
	pieces_unpin(&c->pieces, p);
	pieces_leave(&c->pieces);
	if (err)
		complain(c, what, &why);
	fail_all(failed, &why);
	origin_unref(what.origin);
	return woken;
}

/* Passes. */

/* One thread that drives a pass, until TARGET is decoded. */
struct drive {
	struct content *c;
	struct pass *pass;
	struct piece *target;
	struct origin_entry what;
	uint64_t size; /* of the entry */
	bool failed;   /* the pass, behind the target */
	struct buffer scratch;
};

static kpack_error_t open_pass(struct drive *d, struct kpackx_error *why)
{
	if (!d->pass)
		return kp_fail_memory(why, sizeof(*d->pass), "a decoder");
	if (d->pass->decoder)
		return KPACK_SUCCESS;
	return kp_pass_open(d->what.origin->archive, d->what.entry, d->pass->window,
			    &d->pass->decoder, why);
}

static size_t segment_size(const struct drive *d, uint64_t number)
{
	uint64_t left = d->size - number * SEGMENT;

	return left < SEGMENT ? (size_t)left : SEGMENT;
}

/* Where segment NUMBER is to be kept, admitted; NULL: nowhere. */
static struct piece *keeper(const struct drive *d, uint64_t number)
{
	struct pieces *ps = &d->c->pieces;
	const struct piece *target = d->target;
	struct piece *p = pieces_find(ps, target->entry, SEGMENT, number);

	if (p)
		return p == target || pieces_catch(ps, p) ? p : NULL;
	if (number + KEEP_BEFORE < target->number)
		return NULL;
	p = pieces_add_spare(ps, target->entry, SEGMENT, number, segment_size(d, number));
	if (p) {
		p->kind = PIECE_SEGMENT;
		p->window = target->window;
		p->origin = origin_ref(d->what.origin);
	}
	return p;
}

static uint8_t *segment_buffer(struct drive *d, struct piece *p)
{
	struct buffers *buffers = &d->c->pieces.buffers;

	if (p)
		return pieces_back(&d->c->pieces, p) ? p->buffer.data : NULL;
	if (!d->scratch.data && !buffers_get(buffers, SEGMENT, &d->scratch))
		return NULL;
	return d->scratch.data;
}

static kpack_error_t decode_segment(struct drive *d, uint64_t number, struct piece *p,
				    struct kpackx_error *why)
{
	uint8_t *buf = segment_buffer(d, p);
	size_t size = segment_size(d, number);
	kpack_error_t err, changed;

	if (!buf)
		return kp_fail_memory(why, size, "decoded bytes");
	err = kp_pass_next(d->pass->decoder, buf, size, why);
	changed = check_intact(d->c, d->what.origin, why);
	return changed ? changed : err;
}

/* Only the first frame's window was asked for: is another wider, and may it be? */
static bool wants_more(const struct drive *d)
{
	return d->pass && d->pass->decoder && kp_pass_too_wide(d->pass->decoder) &&
	       d->pass->window < pieces_window(&d->c->pieces);
}

/* P, which is not the target, was decoded, or failed with WHY. */
static void settle(struct drive *d, struct piece *p, kpack_error_t err,
		   const struct kpackx_error *why)
{
	struct content *c = d->c;
	struct request *failed = NULL, *woken = NULL;

	pieces_enter(&c->pieces);
	if (err && p->parked && wants_more(d)) {
		pieces_defer(&c->pieces, p, pieces_window(&c->pieces));
		pieces_leave(&c->pieces);
		return;
	}
	if (err && p->parked) {
		failed = give_up(c, p, why);
	} else if (err) {
		pieces_done(&c->pieces, p, true);
	} else {
		pieces_done(&c->pieces, p, false);
		woken = take_ready(c, p);
	}
	origin_unref(p->origin); /* the pass has another reference */
	p->origin = NULL;
	pieces_unpin(&c->pieces, p);
	pieces_leave(&c->pieces);
	if (failed)
		complain(c, d->what, why);
	fail_all(failed, why);
	run(c, woken);
}

/* Decode the segment the pass comes to. */
static kpack_error_t advance(struct drive *d, struct kpackx_error *why)
{
	struct content *c = d->c;
	uint64_t since = tally_now(), number;
	struct piece *p;
	kpack_error_t err;
	bool stop;

	pieces_enter(&c->pieces);
	stop = c->pieces.stop;
	number = d->pass->at++;
	p = keeper(d, number);
	pieces_leave(&c->pieces);
	err = stop ? kp_fail(why, KPACK_ERROR_IO_ERROR, "unmounted")
		   : decode_segment(d, number, p, why);
	if (!err) {
		pieces_enter(&c->pieces);
		tally_decode(&c->stats, segment_size(d, number), since);
		pieces_leave(&c->pieces);
	}
	if (p && p != d->target)
		settle(d, p, err, why);
	return err;
}

static bool at_end(const struct drive *d)
{
	return d->pass->at * SEGMENT >= d->size;
}

/* Is there room for another segment behind the target? */
static bool may_go_on(const struct drive *d)
{
	struct pieces *ps = &d->c->pieces;
	bool may;

	if (at_end(d) || d->pass->at > d->target->number + KEEP_BEHIND)
		return false;
	pieces_enter(ps);
	may = !ps->stop && pieces_has_spare(ps, SEGMENT) &&
	      !pieces_find(ps, d->target->entry, SEGMENT, d->pass->at);
	pieces_leave(ps);
	return may;
}

static kpack_error_t reach(struct drive *d, struct kpackx_error *why)
{
	KP_TRY(check_intact(d->c, d->what.origin, why));
	KP_TRY(open_pass(d, why));
	while (d->pass->at <= d->target->number)
		KP_TRY(advance(d, why));
	return KPACK_SUCCESS;
}

static void end_drive(struct drive *d, kpack_error_t err, const struct kpackx_error *why)
{
	struct content *c = d->c;
	struct request *failed = NULL;
	bool again = err && wants_more(d);

	pieces_enter(&c->pieces);
	if (d->pass)
		d->pass->ended |= err || d->failed || at_end(d);
	if (again)
		pieces_defer(&c->pieces, d->target, pieces_window(&c->pieces));
	else if (err)
		failed = give_up(c, d->target, why);
	if (d->pass)
		pieces_release(&c->pieces, d->pass);
	if (!again) {
		d->target->origin = NULL;
		pieces_unpin(&c->pieces, d->target);
	}
	pieces_leave(&c->pieces);
	buffers_put(&c->pieces.buffers, d->scratch);
	if (err && !again)
		complain(c, d->what, why);
	fail_all(failed, why);
	if (!again)
		origin_unref(d->what.origin);
}

/* The target has its bytes, and stays pinned while more are decoded. */
static void serve_target(struct drive *d)
{
	struct content *c = d->c;
	struct request *woken;

	pieces_enter(&c->pieces);
	pieces_done(&c->pieces, d->target, false);
	woken = take_ready(c, d->target);
	pieces_leave(&c->pieces);
	run(c, woken);
}

/* Decode P, a segment that was taken from the queue, and some around it. */
static void drive(struct content *c, struct piece *p)
{
	struct drive d = {.c = c, .pass = p->pass, .target = p, .what = piece_entry(p)};
	struct kpackx_error why = {0};
	struct kp_entry_info info;
	kpack_error_t err;

	kp_archive_entry(d.what.origin->archive, d.what.entry, &info);
	d.size = info.size;
	err = reach(&d, &why);
	if (!err) {
		serve_target(&d);
		/* A failure is for who wants those bytes: then it ends the pass only. */
		while (!d.failed && may_go_on(&d))
			d.failed = advance(&d, &why) != KPACK_SUCCESS;
	}
	end_drive(&d, err, &why);
}

/* Waiting. */

/* A piece for the next bytes of R. */
static struct piece *piece_for(struct content *c, const struct request *r)
{
	uint64_t number = next_number(r), left = r->size - number * r->unit;
	struct piece *p = pieces_add(&c->pieces, key_of(r->what), r->unit, number,
				     left < r->unit ? left : r->unit);

	if (!p)
		return NULL;
	p->kind = r->kind;
	p->window = r->window;
	p->origin = origin_ref(r->what.origin);
	return p;
}

static bool park(struct piece *p, struct request *r)
{
	if (!r->parked) {
		struct request *heap = malloc(sizeof(*heap));

		if (!heap)
			return false;
		*heap = *r;
		heap->parked = true;
		r = heap;
	}
	r->next = p->parked;
	p->parked = r;
	return true;
}

enum claim {
	READY,  /* r->ready has the next bytes */
	DECODE, /* the caller is to decode *out; R waits there */
	PARKED, /* R waits for another thread */
	NO_MEMORY,
};

/* Find who has or makes the next bytes of R. */
static enum claim claim(struct content *c, struct request *r, struct piece **out)
{
	struct piece *p =
		pieces_find(&c->pieces, key_of(r->what), r->unit, next_number(r));

	if (p && can_serve(p, r)) {
		make_ready(c, r, p);
		return READY;
	}
	r->waited = true;
	if (!p) {
		p = piece_for(c, r);
		if (!p)
			return NO_MEMORY;
		if (p->size <= INLINE_MAX && p->kind != PIECE_SEGMENT &&
		    pieces_admit(&c->pieces, p)) {
			/* R leaves the stack only to wait again; nobody else sees it. */
			p->parked = r;
			*out = p;
			return DECODE;
		}
		pieces_queue(&c->pieces, p);
	}
	return park(p, r) ? PARKED : NO_MEMORY;
}

/* Bring R on by one piece; returns the requests that can go on now. */
static struct request *serve(struct content *c, struct request *r)
{
	struct piece *p = NULL;
	enum claim claimed = READY;
	bool more;

	if (!r->ready) {
		pieces_enter(&c->pieces);
		claimed = claim(c, r, &p);
		pieces_leave(&c->pieces);
	}
	if (claimed == DECODE)
		return produce(c, p);
	if (claimed == NO_MEMORY) {
		struct kpackx_error why = {0};

		kp_fail_memory(&why, sizeof(*p), "a read");
		fail(r, &why);
	}
	if (claimed != READY)
		return NULL;
	p = r->ready;
	r->ready = NULL;
	more = give(r, p);
	pieces_enter(&c->pieces);
	pieces_unpin(&c->pieces, p);
	pieces_leave(&c->pieces);
	return more ? r : NULL;
}

/* Serve all of LIST until each is answered or parked. */
static void run(struct content *c, struct request *list)
{
	while (list) {
		struct request *r = list;

		list = r->next;
		r->next = NULL;
		list = joined(serve(c, r), list);
	}
}

void content_read(struct content *c, struct origin_entry what, uint64_t off, size_t len,
		  void *token)
{
	content_read_to(c, what, off, len, c->options.answer, token);
}

/* How the bytes of R's entry come into being: as pieces of what kind. */
static void shape(struct content *c, struct request *r, uint64_t chunk)
{
	const struct kpack_archive *a = r->what.origin->archive;
	uint64_t fair = pieces_fair(&c->pieces);

	r->kind = chunk ? PIECE_CHUNK : PIECE_WHOLE;
	r->unit = chunk ? chunk : r->size;
	if ((r->unit < r->size ? r->unit : r->size) <= fair)
		return;
	if (kp_pass_window(a, r->what.entry, &r->window, NULL))
		r->window = 0; /* decoding will tell */
	if (strcmp(kp_archive_scheme(a), "none") == 0) {
		r->kind = PIECE_PLAIN;
		r->unit = PLAIN;
	} else {
		r->kind = PIECE_SEGMENT;
		r->unit = SEGMENT;
	}
}

/* Is R to be tried?  What takes more memory than there may be is not. */
static kpack_error_t check_shape(struct content *c, const struct request *r,
				 uint64_t chunk, struct kpackx_error *why)
{
	uint64_t most = pieces_window(&c->pieces);

	if (chunk && (chunk < KP_CHUNK_MIN || chunk > KP_CHUNK_MAX))
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "chunk size %llu",
			       (unsigned long long)chunk);
	if (r->kind != PIECE_SEGMENT || r->window <= most)
		return KPACK_SUCCESS;
	/* It may be that of other bytes. */
	KP_TRY(check_intact(c, r->what.origin, why));
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
		       "frame has a window of %llu bytes, cache_size allows %llu",
		       (unsigned long long)r->window, (unsigned long long)most);
}

static void refuse(struct content *c, struct request *r, const struct kpackx_error *why)
{
	pieces_enter(&c->pieces);
	tally_fault(&c->stats, why, atomic_load(&r->what.origin->changed));
	pieces_leave(&c->pieces);
	c->options.failure(c->options.user, r->what, why);
	r->answer(r->token, NULL, 0, why);
}

void content_read_to(struct content *c, struct origin_entry what, uint64_t off,
		     size_t len, content_answer *answer, void *token)
{
	struct request r = {.answer = answer, .token = token, .what = what, .off = off};
	struct kpackx_error why = {0};
	struct kp_entry_info info;
	struct kp_meta meta;

	kp_archive_entry(what.origin->archive, what.entry, &info);
	kp_archive_meta(what.origin->archive, what.entry, &meta);
	if (off >= info.size || len == 0) {
		answer(token, NULL, 0, NULL);
		return;
	}
	r.size = info.size;
	r.len = len < info.size - off ? len : (size_t)(info.size - off);
	shape(c, &r, meta.chunk);
	if (check_shape(c, &r, meta.chunk, &why)) {
		refuse(c, &r, &why);
		return;
	}
	origin_ref(what.origin);
	run(c, &r);
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
	out->held = c->pieces.held;
	out->held_most = c->pieces.held_most;
	out->budget = c->pieces.budget;
	pieces_leave(&c->pieces);
}

/* Threads. */

static void *decoder(void *arg)
{
	struct content *c = arg;
	struct piece *p;

	while ((p = pieces_take(&c->pieces)))
		if (p->kind == PIECE_SEGMENT)
			drive(c, p);
		else
			run(c, produce(c, p));
	return NULL;
}

static void *janitor(void *arg)
{
	pieces_tend(arg);
	return NULL;
}

/* Signals are for the thread that runs the loop. */
static bool start(struct content *c)
{
	sigset_t all, old;
	bool ok;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ok = pthread_create(&c->janitor, NULL, janitor, &c->pieces) == 0;
	c->has_janitor = ok;
	while (ok && c->n_threads < c->options.threads) {
		ok = pthread_create(&c->threads[c->n_threads], NULL, decoder, c) == 0;
		c->n_threads += ok;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ok || c->n_threads;
}

void content_forget(struct content *c, const struct origin *o)
{
	tables_forget(&c->tables, o);
	pieces_enter(&c->pieces);
	pieces_forget(&c->pieces, o);
	forget_changed(c, o->serial);
	pieces_leave(&c->pieces);
}

kpack_error_t content_new(const struct content_options *options, struct content **out,
			  struct kpackx_error *why)
{
	size_t size = sizeof(struct content) + options->threads * sizeof(pthread_t);
	struct content *c = calloc(1, size);

	if (!c)
		return kp_fail_memory(why, size, "decoders");
	c->options = *options;
	tables_init(&c->tables);
	pieces_init(&c->pieces, options->budget);
	if (!start(c)) {
		content_free(c);
		return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY, "cannot start threads");
	}
	*out = c;
	return KPACK_SUCCESS;
}

static void stop_threads(struct content *c)
{
	pieces_stop(&c->pieces);
	if (c->has_janitor)
		pthread_join(c->janitor, NULL);
	for (unsigned i = 0; i < c->n_threads; i++)
		pthread_join(c->threads[i], NULL);
}

void content_free(struct content *c)
{
	struct kpackx_error why = {0};

	if (!c)
		return;
	stop_threads(c);
	kp_fail(&why, KPACK_ERROR_IO_ERROR, "unmounted");
	/* What was begun has ended: who still waits, waits for the queue. */
	for (struct piece *p = c->pieces.queue.first; p; p = p->next) {
		fail_all(p->parked, &why);
		origin_unref(p->origin);
	}
	pieces_fini(&c->pieces);
	tables_fini(&c->tables);
	free(c->changed);
	free(c);
}
