/* SPDX-License-Identifier: MIT */
/*
 * Decodes pieces, and serves the requests that wait for them as their bytes come: a small
 * piece or a chunk at once, a large entry as a stream whose first bytes are given away
 * before the last are decoded, and segments by a pass, which decodes an entry in order and
 * keeps some segments around the one that is wanted.
 *
 * Before and after each decode the archive's file is looked at; nothing counts that was
 * decoded while somebody wrote to it.
 */
#include <stdlib.h>
#include "core/archive/entry.h"
#include "core/base/alloc.h"
#include "fs/base/clock.h"
#include "internal.h"

/* Bytes that are decoded between two checks for requests that can be answered. */
#define STEP (256 << 10)

/* The most segments before and behind the target that are kept, if there is room. */
#define KEEP_BEFORE 8
#define KEEP_BEHIND 4

/* The entry of P, which is not decoded yet. */
static struct origin_entry entry_of(const struct piece *p)
{
	return (struct origin_entry){p->origin, (size_t)(p->entry & UINT32_MAX)};
}

/* --- archives that were written to ---------------------------------------------------- */

kpack_error_t content_check_intact(struct content *c, struct origin *o,
				   struct kpackx_error *why)
{
	bool known = false;

	if (origin_intact(o))
		return KPACK_SUCCESS;
	if (!atomic_load(&o->changed))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "cannot look at the archive");
	pieces_enter(&c->pieces);
	for (size_t i = 0; i < c->n_changed; i++)
		known = known || c->changed[i] == o->serial;
	if (!known &&
	    kp_grow(&c->changed, c->n_changed, &c->cap_changed, sizeof(*c->changed)))
		c->changed[c->n_changed++] = o->serial;
	pieces_leave(&c->pieces);
	if (!known && c->options.changed)
		c->options.changed(c->options.user, o);
	return kp_fail(why, KPACK_ERROR_IO_ERROR, "the archive was changed in place");
}

/* --- counting ------------------------------------------------------------------------- */

const double content_time_bounds[CONTENT_TIMES] = {
	0.0001, 0.00025, 0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1, 2.5, 10,
};

const char *const content_fault_names[CONTENT_FAULTS] = {
	[CONTENT_UNREADABLE] = "read",  [CONTENT_CORRUPT] = "decode",
	[CONTENT_MISMATCH] = "hash",    [CONTENT_CHANGED] = "changed",
	[CONTENT_NO_MEMORY] = "memory",
};

/* Count a decode of SIZE bytes that began at SINCE, a time of clock_ns. */
static void count_decode(struct content *c, uint64_t size, uint64_t since)
{
	double seconds = (double)(clock_ns() - since) / 1e9;
	size_t i = 0;

	while (i < CONTENT_TIMES && seconds > content_time_bounds[i])
		i++;
	c->stats.decodes++;
	c->stats.bytes_decoded += size;
	c->stats.decode_seconds += seconds;
	c->stats.decode_times[i]++;
}

void count_fault(struct content *c, const struct kpackx_error *why, bool changed)
{
	enum content_fault fault = CONTENT_CORRUPT;

	if (changed)
		fault = CONTENT_CHANGED;
	else if (why->code == KPACK_ERROR_IO_ERROR)
		fault = CONTENT_UNREADABLE;
	else if (why->code == KPACK_ERROR_OUT_OF_MEMORY)
		fault = CONTENT_NO_MEMORY;
	else if (kp_entry_differs(why))
		fault = CONTENT_MISMATCH;
	c->stats.errors++;
	c->stats.faults[fault]++;
}

/* --- the end of a decode -------------------------------------------------------------- */

/*
 * With the lock of the pieces: the decode of P failed with WHY.  Returns the requests that
 * waited, for that error.
 */
static struct request *fail_piece(struct content *c, struct piece *p,
				  const struct kpackx_error *why)
{
	struct request *failed = p->parked;

	p->parked = NULL;
	pieces_done(&c->pieces, p, true);
	if (!c->pieces.executor->stopped && !p->ahead)
		count_fault(c, why, atomic_load(&p->origin->changed));
	return failed;
}

/* Report a failure, unless its cause is that everything is being stopped. */
static void report_failure(struct content *c, struct origin_entry what,
			   const struct kpackx_error *why)
{
	bool stop;

	pieces_enter(&c->pieces);
	stop = c->pieces.executor->stopped;
	pieces_leave(&c->pieces);
	if (!stop)
		c->options.failure(c->options.user, what, why);
}

/*
 * End the decode of P, which began at SINCE: it has its bytes, or ERR and WHY say why not.
 * The requests that waited for it are failed, or returned: they can continue.
 */
static struct request *finish_piece(struct content *c, struct piece *p, uint64_t since,
				    kpack_error_t err, const struct kpackx_error *why)
{
	struct origin_entry what = entry_of(p);
	struct request *failed = NULL, *woken = NULL;
	bool ahead;

	pieces_enter(&c->pieces);
	ahead = p->ahead;
	if (err) {
		failed = fail_piece(c, p, why);
	} else {
		pieces_done(&c->pieces, p, false);
		count_decode(c, p->size, since);
		woken = requests_take(c, p);
	}
	p->origin = NULL;
	pieces_unpin(&c->pieces, p);
	pieces_leave(&c->pieces);
	if (err && !ahead)
		report_failure(c, what, why);
	requests_fail(failed, why);
	origin_unref(what.origin);
	return woken;
}

/* --- chunk tables --------------------------------------------------------------------- */

/* The most tables that are kept open although unused. */
#define TABLES_MAX 32
/* The most rows, of 12 bytes, in all of these tables. */
#define ROWS_MAX (1 << 20)

/* An open chunk table, which is in use as long as it is pinned. */
struct table {
	struct table *next;
	struct origin_entry what; /* with a reference */
	unsigned pins;
	struct kp_reader *chunks;
};

/* Close a list of tables.  Called without the lock. */
static void close_tables(struct table *t)
{
	for (struct table *next; t; t = next) {
		next = t->next;
		kp_reader_close(t->chunks);
		origin_unref(t->what.origin);
		free(t);
	}
}

/* Move the table at AT to the list DROPPED. */
static void unlink_table(struct table **at, struct table **dropped)
{
	struct table *t = *at;

	*at = t->next;
	t->next = *dropped;
	*dropped = t;
}

void chunk_tables_close(struct chunk_tables *ts, const struct origin *o)
{
	struct table *dropped = NULL;

	pthread_mutex_lock(&ts->lock);
	for (struct table **at = &ts->first; *at;) {
		if ((!o || (*at)->what.origin == o) && !(*at)->pins)
			unlink_table(at, &dropped);
		else
			at = &(*at)->next;
	}
	pthread_mutex_unlock(&ts->lock);
	close_tables(dropped);
}

/* Pin the table of WHAT if it is open, and make it the first; else NULL. */
static struct table *pin_table(struct chunk_tables *ts, struct origin_entry what)
{
	for (struct table **at = &ts->first; *at; at = &(*at)->next) {
		struct table *t = *at;

		if (t->what.origin != what.origin || t->what.entry != what.entry)
			continue;
		unlink_table(at, &ts->first);
		t->pins++;
		return t;
	}
	return NULL;
}

/* --- at once -------------------------------------------------------------------------- */

static kpack_error_t decode_bytes(struct content *c, struct piece *p,
				  struct kpackx_error *why)
{
	struct origin_entry what = entry_of(p);
	struct chunk_tables *ts = &c->tables;
	struct table *t, *opened, *dropped = NULL;
	uint64_t done, rows = 0;
	unsigned count = 0;
	struct kp_reader *d;
	kpack_error_t err;
	size_t got;

	if (!pieces_back(&c->pieces, p))
		return kp_fail_memory(why, p->size, "decoded bytes");
	if (p->kind == PIECE_PLAIN)
		return kp_entry_read_range(what.origin->archive, what.entry,
					   p->number * p->unit, p->buffer.data,
					   (size_t)p->size, &got, why);
	if (p->kind != PIECE_CHUNK) {
		KP_TRY(decoders_open(&c->pieces.decoders, what, KP_READ_WHOLE, UINT64_MAX,
				     &d, why));
		err = kp_reader_next(d, p->buffer.data, UINT64_MAX, &done, why);
		decoders_close(&c->pieces.decoders, d);
		return err;
	}

	/*
	 * The chunk's table.  Two threads may open the same one at once: then the second copy is
	 * closed.
	 */
	pthread_mutex_lock(&ts->lock);
	t = pin_table(ts, what);
	pthread_mutex_unlock(&ts->lock);
	if (!t) {
		KP_TRY(kp_new(&opened, 1, "a chunk table", why));
		err = kp_reader_open(what.origin->archive, what.entry, KP_READ_PARTS,
				     &opened->chunks, why);
		if (err) {
			free(opened);
			return err;
		}
		opened->what = what;
		opened->pins = 1;
		origin_ref(what.origin);
		pthread_mutex_lock(&ts->lock);
		t = pin_table(ts, what);
		if (t) {
			dropped = opened;
		} else {
			t = opened;
			t->next = ts->first;
			ts->first = t;
			/* close unused tables in excess of the limits */
			for (struct table **at = &ts->first; *at;) {
				rows += kp_reader_chunks((*at)->chunks);
				if ((++count <= TABLES_MAX && rows <= ROWS_MAX) ||
				    (*at)->pins)
					at = &(*at)->next;
				else
					unlink_table(at, &dropped);
			}
		}
		pthread_mutex_unlock(&ts->lock);
		close_tables(dropped);
		dropped = NULL;
	}
	/* Core checked at open that the table agrees with the metadata and the size. */
	err = kp_reader_at(t->chunks, p->number * p->unit, p->buffer.data, p->size, why);
	pthread_mutex_lock(&ts->lock);
	if (--t->pins == 0 && atomic_load(&t->what.origin->idle)) {
		struct table **at = &ts->first;

		while (*at != t)
			at = &(*at)->next;
		unlink_table(at, &dropped);
	}
	pthread_mutex_unlock(&ts->lock);
	close_tables(dropped);
	return err;
}

struct request *decode_now(struct content *c, struct piece *p)
{
	struct origin_entry what = entry_of(p);
	struct kpackx_error why = {0};
	uint64_t since = clock_ns();
	kpack_error_t changed, err = content_check_intact(c, p->origin, &why);

	if (!err) {
		err = decode_bytes(c, p, &why);
		/* if it was written to, that is the cause */
		changed = content_check_intact(c, p->origin, &why);
		/* last: the file may have been written to meanwhile */
		if (!err && !changed && p->kind != PIECE_WHOLE)
			err = kp_entry_check_parts(what.origin->archive, what.entry,
						   pieces_window(&c->pieces), &why);
		if (changed)
			err = changed;
	}
	return finish_piece(c, p, since, err, &why);
}

/* --- streams -------------------------------------------------------------------------- */

/*
 * READY bytes are decoded: if a part may be given away, wake the requests that wait for it.
 * Fails if the decode is to end: everything is being stopped, or P was decoded ahead and
 * something that is asked for waits for a decoder.
 */
static kpack_error_t publish_progress(struct content *c, struct piece *p, uint64_t ready,
				      struct kpackx_error *why)
{
	struct request *list;
	bool stop;

	KP_TRY(content_check_intact(c, p->origin, why));
	if (!kp_entry_has_parts(p->origin->archive, entry_of(p).entry))
		ready = 0;
	pieces_enter(&c->pieces);
	p->yielded = p->ahead && c->pieces.queue.first;
	/* No request may find bytes that are freed when P is deferred. */
	if (p->yielded || ready)
		p->ready = p->yielded ? 0 : ready;
	stop = c->pieces.executor->stopped || p->yielded;
	list = requests_take(c, p);
	pieces_leave(&c->pieces);
	requests_serve(c, list);
	return stop ? kp_fail(why, KPACK_ERROR_IO_ERROR, "unmounted") : KPACK_SUCCESS;
}

static void decode_stream(struct content *c, struct piece *p)
{
	struct kpackx_error why = {0};
	uint64_t since = clock_ns(), ready = 0;
	struct kp_reader *d = NULL;
	kpack_error_t changed, err = content_check_intact(c, p->origin, &why);

	if (err)
		goto finish;
	if (!pieces_back(&c->pieces, p)) {
		err = kp_fail_memory(&why, p->size, "decoded bytes");
		goto finish;
	}
	err = decoders_open(&c->pieces.decoders, entry_of(p), KP_READ_STEPS, UINT64_MAX,
			    &d, &why);
	while (!err && ready < p->size) {
		err = kp_reader_next(d, p->buffer.data, STEP, &ready, &why);
		/* The last bytes are published when the piece is done. */
		if (!err && ready < p->size)
			err = publish_progress(c, p, ready, &why);
	}
	decoders_close(&c->pieces.decoders, d);
	changed = content_check_intact(c, p->origin, &why); /* if so, that is the cause */
	if (changed)
		err = changed;
	if (err && p->yielded) {
		pieces_enter(&c->pieces);
		p->yielded = false;
		pieces_defer(&c->pieces, p, p->window);
		pieces_leave(&c->pieces);
		return;
	}
finish:
	requests_serve(c, finish_piece(c, p, since, err, &why));
}

/* --- passes --------------------------------------------------------------------------- */

/* A thread's run of a pass, until TARGET is decoded. */
struct drive {
	struct content *c;
	struct pass *pass;
	struct piece *target;
	struct origin_entry what;
	uint64_t size; /* of the entry */
	struct buffer scratch;
};

static size_t segment_size(const struct drive *d, uint64_t number)
{
	uint64_t left = d->size - number * SEGMENT;

	return left < SEGMENT ? (size_t)left : SEGMENT;
}

static bool is_at_end(const struct drive *d)
{
	return d->pass->at * SEGMENT >= d->size;
}

/*
 * True if the pass failed because of a window wider than the first frame's, and the
 * budget allows a pass with a wider window.
 */
static bool wants_more(const struct drive *d)
{
	return d->pass && d->pass->decoder && kp_reader_too_wide(d->pass->decoder) &&
	       d->pass->window < pieces_window(&d->c->pieces);
}

/* An admitted piece that keeps segment NUMBER; NULL: the segment is not kept. */
static struct piece *keeper_piece(const struct drive *d, uint64_t number)
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

/*
 * Decode segment NUMBER, which is the pass's next, into P; NULL: it is not kept.  The requests for P
 * are answered, unless it is the target.
 */
static kpack_error_t pass_segment(struct drive *d, uint64_t number, struct piece *p,
				  struct kpackx_error *why)
{
	struct content *c = d->c;
	struct pieces *ps = &c->pieces;
	struct request *failed = NULL, *woken = NULL;
	size_t size = segment_size(d, number);
	uint64_t since = clock_ns(), done;
	kpack_error_t err, changed;
	uint8_t *buf = NULL;

	if (p && pieces_back(ps, p))
		buf = p->buffer.data;
	else if (!p &&
		 (d->scratch.data || buffers_get(&ps->buffers, SEGMENT, &d->scratch)))
		buf = d->scratch.data;
	if (!buf) {
		err = kp_fail_memory(why, size, "decoded bytes");
	} else {
		err = kp_reader_next(d->pass->decoder, buf, size, &done, why);
		changed = content_check_intact(c, d->what.origin, why);
		/* last: the file may have been written to since the pass began */
		if (!err && !changed)
			err = kp_entry_check_parts(d->what.origin->archive, d->what.entry,
						   pieces_window(ps), why);
		err = changed ? changed : err;
	}

	pieces_enter(ps);
	if (!err)
		count_decode(c, size, since);
	if (!p || p == d->target) {
		pieces_leave(ps);
		return err;
	}
	if (err && p->parked && wants_more(d)) {
		pieces_defer(ps, p, pieces_window(ps));
		pieces_leave(ps);
		return err;
	}
	if (err && p->parked) {
		failed = fail_piece(c, p, why);
	} else if (err) {
		pieces_done(ps, p, true);
	} else {
		pieces_done(ps, p, false);
		woken = requests_take(c, p);
	}
	origin_unref(p->origin); /* the pass has another reference */
	p->origin = NULL;
	pieces_unpin(ps, p);
	pieces_leave(ps);
	if (failed)
		report_failure(c, d->what, why);
	requests_fail(failed, why);
	requests_serve(c, woken);
	return err;
}

/* Decode all segments up to the target. */
static kpack_error_t reach_target(struct drive *d, struct kpackx_error *why)
{
	struct pieces *ps = &d->c->pieces;
	struct pass *pass = d->pass;

	KP_TRY(content_check_intact(d->c, d->what.origin, why));
	if (!pass)
		return kp_fail_memory(why, sizeof(*pass), "a decoder");
	if (!pass->decoder) {
		/* It may rest long: with no decoder of much more than it is charged for. */
		KP_TRY(decoders_open(&ps->decoders, d->what, KP_READ_PIECES,
				     pass_cost(pass->window) + pass_cost(0),
				     &pass->decoder, why));
		kp_reader_limit_window(pass->decoder, pass->window);
	}
	while (pass->at <= d->target->number) {
		struct piece *p = NULL;
		uint64_t number;
		bool stop;

		pieces_enter(ps);
		stop = ps->executor->stopped;
		number = pass->at++;
		if (!stop)
			p = keeper_piece(d, number);
		pieces_leave(ps);
		if (stop)
			return kp_fail(why, KPACK_ERROR_IO_ERROR, "unmounted");
		KP_TRY(pass_segment(d, number, p, why));
	}
	return KPACK_SUCCESS;
}

static void decode_by_pass(struct content *c, struct piece *p)
{
	struct drive d = {.c = c, .pass = p->pass, .target = p, .what = entry_of(p)};
	struct pieces *ps = &c->pieces;
	struct kpackx_error why = {0};
	struct request *woken, *failed = NULL;
	struct kp_entry_info info;
	bool again, failed_behind = false;
	uint64_t ahead, until;
	kpack_error_t err;

	pieces_enter(ps);
	ahead = p->ahead;
	pieces_leave(ps);
	until = ahead ? ahead / SEGMENT : p->number + KEEP_BEHIND + 1;
	kp_archive_entry(d.what.origin->archive, d.what.entry, &info);
	d.size = info.size;
	err = reach_target(&d, &why);
	if (!err) {
		/* the target stays pinned while more segments are decoded */
		pieces_enter(ps);
		pieces_done(ps, p, false);
		woken = requests_take(c, p);
		pieces_leave(ps);
		requests_serve(c, woken);
		/* A failure there is reported to the requests for those bytes; for the target it
		 * only ends the pass. */
		while (!failed_behind && !is_at_end(&d) && d.pass->at < until) {
			struct piece *next = NULL;
			uint64_t number;

			pieces_enter(ps);
			number = d.pass->at;
			if (!ps->executor->stopped &&
			    (!ahead || pieces_are_idle(ps, SEGMENT)) &&
			    !pieces_find(ps, p->entry, SEGMENT, number))
				next = keeper_piece(&d, number);
			d.pass->at += next != NULL;
			pieces_leave(ps);
			if (!next)
				break;
			failed_behind = pass_segment(&d, number, next, &why);
		}
	}

	again = err && wants_more(&d);
	pieces_enter(ps);
	ahead = p->ahead;
	if (d.pass)
		d.pass->ended |= err || failed_behind || is_at_end(&d);
	if (again)
		pieces_defer(ps, p, pieces_window(ps));
	else if (err)
		failed = fail_piece(c, p, &why);
	if (d.pass)
		pieces_release(ps, d.pass);
	if (!again) {
		p->origin = NULL;
		pieces_unpin(ps, p);
	}
	pieces_leave(ps);
	buffers_put(&ps->buffers, d.scratch);
	if (err && !again && !ahead)
		report_failure(c, d.what, &why);
	requests_fail(failed, &why);
	if (!again)
		origin_unref(d.what.origin);
}

/* --- the choice ----------------------------------------------------------------------- */

void decode_queued(struct content *c, struct piece *p)
{
	struct origin_entry what = entry_of(p);
	struct kp_entry_info info;
	uint64_t beside = 0; /* bytes that decoding P holds besides P's */
	bool room = true;

	if (p->kind == PIECE_SEGMENT) {
		decode_by_pass(c, p);
		return;
	}
	if (p->size > INLINE_MAX && p->kind == PIECE_WHOLE) {
		beside = kp_entry_memory(what.origin->archive, what.entry);
	} else if (p->size > INLINE_MAX && p->kind != PIECE_PLAIN) {
		/* the stored bytes of the chunk, which are not yet known exactly */
		kp_archive_entry(what.origin->archive, what.entry, &info);
		beside = info.stored * p->size / info.size;
	}
	if (beside && !p->beside) {
		pieces_enter(&c->pieces);
		room = pieces_add_beside(&c->pieces, p, beside);
		pieces_leave(&c->pieces);
	}
	if (!room)
		return; /* P waits for it */
	if (p->kind == PIECE_WHOLE && p->size > INLINE_MAX)
		decode_stream(c, p);
	else
		requests_serve(c, decode_now(c, p));
}
