/* SPDX-License-Identifier: MIT */
#include "decode.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/alloc.h"
#include "counters.h"

/* Bytes that are decoded between two checks for requests that can be answered. */
#define STEP (256 << 10)

/* The most segments before and behind the target that are kept, if there is room. */
#define KEEP_BEFORE 8
#define KEEP_BEHIND 4

/* Archives that were written to. */

static bool note_changed(struct decoding *m, uint32_t serial)
{
	for (size_t i = 0; i < m->n_changed; i++)
		if (m->changed[i] == serial)
			return false;
	if (kp_grow(&m->changed, m->n_changed, &m->cap_changed, sizeof(*m->changed)))
		m->changed[m->n_changed++] = serial;
	return true;
}

static void forget_changed(struct decoding *m, uint32_t serial)
{
	for (size_t i = 0; i < m->n_changed; i++)
		if (m->changed[i] == serial)
			m->changed[i--] = m->changed[--m->n_changed];
}

kpack_error_t decoding_check(struct decoding *m, struct origin *o,
			     struct kpackx_error *why)
{
	bool first;

	if (origin_intact(o))
		return KPACK_SUCCESS;
	pieces_enter(&m->pieces);
	first = note_changed(m, o->serial);
	pieces_leave(&m->pieces);
	if (first && m->options->changed)
		m->options->changed(m->options->user, o);
	return kp_fail(why, KPACK_ERROR_IO_ERROR, "the archive was changed in place");
}

/* Pieces. */

/* The entry of P, which is not decoded yet. */
static struct origin_entry piece_entry(const struct piece *p)
{
	return (struct origin_entry){p->origin, (size_t)(p->entry & UINT32_MAX)};
}

static kpack_error_t decode_chunk(struct decoding *m, struct piece *p,
				  struct kpackx_error *why)
{
	struct table *t;
	kpack_error_t err = chunk_tables_get(&m->tables, piece_entry(p), &t, why);

	/* Core checked at open that the table agrees with the metadata and the size. */
	if (!err) {
		err = kp_chunks_read(t->chunks, p->number, p->buffer.data, why);
		chunk_tables_put(&m->tables, t);
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

/* Publish that READY bytes are decoded, and wake the requests that wait for them. */
static kpack_error_t publish_progress(struct decoding *m, struct piece *p, uint64_t ready,
				      struct kpackx_error *why)
{
	struct request *list;
	bool stop;

	KP_TRY(decoding_check(m, p->origin, why));
	pieces_enter(&m->pieces);
	p->ready = ready;
	stop = m->pieces.stop;
	list = requests_take(&m->pieces, &m->stats, p);
	pieces_leave(&m->pieces);
	m->run(m->content, list);
	return stop ? kp_fail(why, KPACK_ERROR_IO_ERROR, "unmounted") : KPACK_SUCCESS;
}

static kpack_error_t decode_stream(struct decoding *m, struct piece *p,
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
			err = publish_progress(m, p, ready, why);
	}
	kp_stream_close(s);
	return err;
}

static kpack_error_t decode_bytes(struct decoding *m, struct piece *p,
				  struct kpackx_error *why)
{
	struct origin_entry what = piece_entry(p);

	if (!pieces_back(&m->pieces, p))
		return kp_fail_memory(why, p->size, "decoded bytes");
	if (p->kind == PIECE_CHUNK)
		return decode_chunk(m, p, why);
	if (p->kind == PIECE_PLAIN)
		return read_plain(p, what, why);
	if (p->size > INLINE_MAX)
		return decode_stream(m, p, what, why);
	return kp_archive_read(what.origin->archive, what.entry, p->buffer.data, why);
}

static kpack_error_t decode_piece(struct decoding *m, struct piece *p,
				  struct kpackx_error *why)
{
	kpack_error_t err, changed;

	KP_TRY(decoding_check(m, p->origin, why));
	err = decode_bytes(m, p, why);
	changed = decoding_check(m, p->origin, why); /* if so, that is the cause */
	return changed ? changed : err;
}

/* The decode of P failed with WHY.  Returns the requests that waited, for that error. */
static struct request *fail_piece(struct decoding *m, struct piece *p,
				  const struct kpackx_error *why)
{
	struct request *failed = p->parked;

	p->parked = NULL;
	pieces_done(&m->pieces, p, true);
	if (!m->pieces.stop)
		counters_fault(&m->stats, why, atomic_load(&p->origin->changed));
	return failed;
}

/* Report a failure, unless its cause is that everything is being stopped. */
static void report_failure(struct decoding *m, struct origin_entry what,
			   const struct kpackx_error *why)
{
	bool stop;

	pieces_enter(&m->pieces);
	stop = m->pieces.stop;
	pieces_leave(&m->pieces);
	if (!stop)
		m->options->failure(m->options->user, what, why);
}

struct request *decoding_produce(struct decoding *m, struct piece *p)
{
	struct kpackx_error why = {0};
	uint64_t since = counters_now();
	kpack_error_t err = decode_piece(m, p, &why);
	struct origin_entry what = piece_entry(p);
	struct request *failed = NULL, *woken = NULL;

	pieces_enter(&m->pieces);
	if (err) {
		failed = fail_piece(m, p, &why);
	} else {
		pieces_done(&m->pieces, p, false);
		counters_decode(&m->stats, p->size, since);
		woken = requests_take(&m->pieces, &m->stats, p);
	}
	p->origin = NULL;
	pieces_unpin(&m->pieces, p);
	pieces_leave(&m->pieces);
	if (err)
		report_failure(m, what, &why);
	requests_fail(failed, &why);
	origin_unref(what.origin);
	return woken;
}

/* Passes. */

/* A thread's run of a pass, until TARGET is decoded. */
struct drive {
	struct decoding *m;
	struct pass *pass;
	struct piece *target;
	struct origin_entry what;
	uint64_t size; /* of the entry */
	bool failed;   /* the pass failed behind the target */
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

/* An admitted piece that keeps segment NUMBER; NULL: the segment is not kept. */
static struct piece *keeper(const struct drive *d, uint64_t number)
{
	struct pieces *ps = &d->m->pieces;
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
	struct buffers *buffers = &d->m->pieces.buffers;

	if (p)
		return pieces_back(&d->m->pieces, p) ? p->buffer.data : NULL;
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
	changed = decoding_check(d->m, d->what.origin, why);
	return changed ? changed : err;
}

/*
 * True if the pass failed because of a window wider than the first frame's, and the
 * budget allows a pass with a wider window.
 */
static bool wants_more(const struct drive *d)
{
	return d->pass && d->pass->decoder && kp_pass_too_wide(d->pass->decoder) &&
	       d->pass->window < pieces_window(&d->m->pieces);
}

/* P, which is not the target, was decoded, or failed with WHY: end its decode. */
static void settle_piece(struct drive *d, struct piece *p, kpack_error_t err,
			 const struct kpackx_error *why)
{
	struct decoding *m = d->m;
	struct request *failed = NULL, *woken = NULL;

	pieces_enter(&m->pieces);
	if (err && p->parked && wants_more(d)) {
		pieces_defer(&m->pieces, p, pieces_window(&m->pieces));
		pieces_leave(&m->pieces);
		return;
	}
	if (err && p->parked) {
		failed = fail_piece(m, p, why);
	} else if (err) {
		pieces_done(&m->pieces, p, true);
	} else {
		pieces_done(&m->pieces, p, false);
		woken = requests_take(&m->pieces, &m->stats, p);
	}
	origin_unref(p->origin); /* the pass has another reference */
	p->origin = NULL;
	pieces_unpin(&m->pieces, p);
	pieces_leave(&m->pieces);
	if (failed)
		report_failure(m, d->what, why);
	requests_fail(failed, why);
	m->run(m->content, woken);
}

/* Decode the next segment of the pass. */
static kpack_error_t advance_pass(struct drive *d, struct kpackx_error *why)
{
	struct decoding *m = d->m;
	uint64_t since = counters_now(), number;
	struct piece *p;
	kpack_error_t err;
	bool stop;

	pieces_enter(&m->pieces);
	stop = m->pieces.stop;
	number = d->pass->at++;
	p = keeper(d, number);
	pieces_leave(&m->pieces);
	err = stop ? kp_fail(why, KPACK_ERROR_IO_ERROR, "unmounted")
		   : decode_segment(d, number, p, why);
	if (!err) {
		pieces_enter(&m->pieces);
		counters_decode(&m->stats, segment_size(d, number), since);
		pieces_leave(&m->pieces);
	}
	if (p && p != d->target)
		settle_piece(d, p, err, why);
	return err;
}

static bool at_end(const struct drive *d)
{
	return d->pass->at * SEGMENT >= d->size;
}

/*
 * True if the pass may decode another segment behind the target, for which there is room.
 */
static bool may_go_on(const struct drive *d)
{
	struct pieces *ps = &d->m->pieces;
	bool may;

	if (at_end(d) || d->pass->at > d->target->number + KEEP_BEHIND)
		return false;
	pieces_enter(ps);
	may = !ps->stop && pieces_has_spare(ps, SEGMENT) &&
	      !pieces_find(ps, d->target->entry, SEGMENT, d->pass->at);
	pieces_leave(ps);
	return may;
}

static kpack_error_t reach_target(struct drive *d, struct kpackx_error *why)
{
	KP_TRY(decoding_check(d->m, d->what.origin, why));
	KP_TRY(open_pass(d, why));
	while (d->pass->at <= d->target->number)
		KP_TRY(advance_pass(d, why));
	return KPACK_SUCCESS;
}

static void end_drive(struct drive *d, kpack_error_t err, const struct kpackx_error *why)
{
	struct decoding *m = d->m;
	struct request *failed = NULL;
	bool again = err && wants_more(d);

	pieces_enter(&m->pieces);
	if (d->pass)
		d->pass->ended |= err || d->failed || at_end(d);
	if (again)
		pieces_defer(&m->pieces, d->target, pieces_window(&m->pieces));
	else if (err)
		failed = fail_piece(m, d->target, why);
	if (d->pass)
		pieces_release(&m->pieces, d->pass);
	if (!again) {
		d->target->origin = NULL;
		pieces_unpin(&m->pieces, d->target);
	}
	pieces_leave(&m->pieces);
	buffers_put(&m->pieces.buffers, d->scratch);
	if (err && !again)
		report_failure(m, d->what, why);
	requests_fail(failed, why);
	if (!again)
		origin_unref(d->what.origin);
}

/* Serve the target, which is decoded; it stays pinned while more segments are decoded. */
static void serve_target(struct drive *d)
{
	struct decoding *m = d->m;
	struct request *woken;

	pieces_enter(&m->pieces);
	pieces_done(&m->pieces, d->target, false);
	woken = requests_take(&m->pieces, &m->stats, d->target);
	pieces_leave(&m->pieces);
	m->run(m->content, woken);
}

void decoding_drive(struct decoding *m, struct piece *p)
{
	struct drive d = {.m = m, .pass = p->pass, .target = p, .what = piece_entry(p)};
	struct kpackx_error why = {0};
	struct kp_entry_info info;
	kpack_error_t err;

	kp_archive_entry(d.what.origin->archive, d.what.entry, &info);
	d.size = info.size;
	err = reach_target(&d, &why);
	if (!err) {
		serve_target(&d);
		/*
		 * A failure here is reported to the requests for those bytes; for the
		 * target it only ends the pass.
		 */
		while (!d.failed && may_go_on(&d))
			d.failed = advance_pass(&d, &why) != KPACK_SUCCESS;
	}
	end_drive(&d, err, &why);
}

void decoding_init(struct decoding *m, const struct content_options *options)
{
	*m = (struct decoding){.options = options};
	chunk_tables_init(&m->tables);
	pieces_init(&m->pieces, options->budget);
}

void decoding_fini(struct decoding *m)
{
	pieces_fini(&m->pieces);
	chunk_tables_fini(&m->tables);
	free(m->changed);
}

void decoding_forget(struct decoding *m, const struct origin *o)
{
	chunk_tables_forget(&m->tables, o);
	pieces_enter(&m->pieces);
	pieces_forget(&m->pieces, o);
	forget_changed(m, o->serial);
	pieces_leave(&m->pieces);
}
