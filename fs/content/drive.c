/* SPDX-License-Identifier: MIT */
#include "drive.h"
#include "core/base/bounds.h"
#include "fs/base/clock.h"
#include "counters.h"
#include "serve.h"

/* Bytes that are decoded between two checks for requests that can be answered. */
#define STEP (256 << 10)

/* The most segments before and behind the target that are kept, if there is room. */
#define KEEP_BEFORE 8
#define KEEP_BEHIND 4

/* Streams. */

/*
 * READY bytes are decoded: if a part may be given away, wake the requests that wait for it.
 */
static kpack_error_t publish_progress(struct decoding *m, struct piece *p, uint64_t ready,
				      struct kpackx_error *why)
{
	struct request *list;
	bool stop;

	KP_TRY(decoding_check(m, p->origin, why));
	if (!kp_archive_has_parts(p->origin->archive, decoding_entry(p).entry))
		ready = 0;
	pieces_enter(&m->pieces);
	p->yielded = p->ahead && m->pieces.queue.first;
	/* No request may find bytes that put_back frees. */
	if (p->yielded || ready)
		p->ready = p->yielded ? 0 : ready;
	stop = m->pieces.executor->stopped || p->yielded;
	list = requests_take(&m->pieces, &m->stats, p);
	pieces_leave(&m->pieces);
	requests_serve(m, list);
	return stop ? kp_fail(why, KPACK_ERROR_IO_ERROR, "unmounted") : KPACK_SUCCESS;
}

static kpack_error_t decode_stream(struct decoding *m, struct piece *p,
				   struct origin_entry what, struct kpackx_error *why)
{
	struct kp_decode *d = NULL;
	uint64_t ready = 0;
	kpack_error_t err = decoders_open(&m->pieces.decoders, what, KP_DECODE_STEPS,
					  UINT64_MAX, &d, why);

	while (!err && ready < p->size) {
		err = kp_decode_next(d, p->buffer.data, STEP, &ready, why);
		/* The last bytes are published when the piece is done. */
		if (!err && ready < p->size)
			err = publish_progress(m, p, ready, why);
	}
	decoders_close(&m->pieces.decoders, d);
	return err;
}

static kpack_error_t decode_whole(struct decoding *m, struct piece *p,
				  struct kpackx_error *why)
{
	kpack_error_t err, changed;

	KP_TRY(decoding_check(m, p->origin, why));
	if (!pieces_back(&m->pieces, p))
		return kp_fail_memory(why, p->size, "decoded bytes");
	err = decode_stream(m, p, decoding_entry(p), why);
	changed = decoding_check(m, p->origin, why); /* if so, that is the cause */
	return changed ? changed : err;
}

/* P was decoded ahead; now something that is asked for waits for a decoder. */
static void put_back(struct decoding *m, struct piece *p)
{
	pieces_enter(&m->pieces);
	p->yielded = false;
	pieces_defer(&m->pieces, p, p->window);
	pieces_leave(&m->pieces);
}

static void drive_stream(struct decoding *m, struct piece *p)
{
	struct kpackx_error why = {0};
	uint64_t since = clock_ns();
	kpack_error_t err = decode_whole(m, p, &why);

	if (err && p->yielded)
		put_back(m, p);
	else
		requests_serve(m, decoding_finish(m, p, since, err, &why));
}

/* Passes. */

/* A thread's run of a pass, until TARGET is decoded. */
struct drive {
	struct decoding *m;
	struct pass *pass;
	struct piece *target;
	struct origin_entry what;
	uint64_t size;  /* of the entry */
	bool failed;    /* the pass failed behind the target */
	uint64_t ahead; /* of the target when the drive began */
	struct buffer scratch;
};

static kpack_error_t open_pass(struct drive *d, struct kpackx_error *why)
{
	struct pass *pass = d->pass;
	uint64_t most;

	if (!pass)
		return kp_fail_memory(why, sizeof(*pass), "a decoder");
	if (pass->decoder)
		return KPACK_SUCCESS;
	/* The pass may rest long: with no decoder of much more than it is charged for. */
	most = pass_cost(pass->window) + pass_cost(0);
	KP_TRY(decoders_open(&d->m->pieces.decoders, d->what, KP_DECODE_WINDOW, most,
			     &pass->decoder, why));
	return kp_decode_limit_window(pass->decoder, pass->window, why);
}

static size_t segment_size(const struct drive *d, uint64_t number)
{
	uint64_t left = d->size - number * SEGMENT;

	return left < SEGMENT ? (size_t)left : SEGMENT;
}

/* An admitted piece that keeps segment NUMBER; NULL: the segment is not kept. */
static struct piece *keeper_piece(const struct drive *d, uint64_t number)
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
	uint64_t done;

	if (!buf)
		return kp_fail_memory(why, size, "decoded bytes");
	err = kp_decode_next(d->pass->decoder, buf, size, &done, why);
	changed = decoding_check(d->m, d->what.origin, why);
	/* last: the file may have been written to since the pass began */
	if (!err && !changed)
		err = kp_archive_check_parts(d->what.origin->archive, d->what.entry,
					     pieces_window(&d->m->pieces), why);
	return changed ? changed : err;
}

/*
 * True if the pass failed because of a window wider than the first frame's, and the
 * budget allows a pass with a wider window.
 */
static bool wants_more(const struct drive *d)
{
	return d->pass && d->pass->decoder && kp_decode_too_wide(d->pass->decoder) &&
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
		failed = decoding_fail(m, p, why);
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
		decoding_report(m, d->what, why);
	requests_fail(failed, why);
	requests_serve(m, woken);
}

/* Decode segment NUMBER, which is the pass's next, into P; NULL: it is not kept. */
static kpack_error_t pass_segment(struct drive *d, uint64_t number, struct piece *p,
				  struct kpackx_error *why)
{
	struct decoding *m = d->m;
	uint64_t since = clock_ns();
	kpack_error_t err = decode_segment(d, number, p, why);

	if (!err) {
		pieces_enter(&m->pieces);
		counters_decode(&m->stats, segment_size(d, number), since);
		pieces_leave(&m->pieces);
	}
	if (p && p != d->target)
		settle_piece(d, p, err, why);
	return err;
}

/* Decode the next segment up to the target. */
static kpack_error_t advance_pass(struct drive *d, struct kpackx_error *why)
{
	struct pieces *ps = &d->m->pieces;
	struct piece *p = NULL;
	uint64_t number;
	bool stop;

	pieces_enter(ps);
	stop = ps->executor->stopped;
	number = d->pass->at++;
	if (!stop)
		p = keeper_piece(d, number);
	pieces_leave(ps);
	if (stop)
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "unmounted");
	return pass_segment(d, number, p, why);
}

static bool at_end(const struct drive *d)
{
	return d->pass->at * SEGMENT >= d->size;
}

/*
 * Decode another segment behind the target, if it can be kept.  false: it cannot, or the
 * decode failed.
 */
static bool go_on(struct drive *d)
{
	struct pieces *ps = &d->m->pieces;
	struct kpackx_error why = {0};
	uint64_t until =
		d->ahead ? d->ahead / SEGMENT : d->target->number + KEEP_BEHIND + 1;
	uint64_t number;
	struct piece *p = NULL;

	if (at_end(d) || d->pass->at >= until)
		return false;
	pieces_enter(ps);
	number = d->pass->at;
	if (!ps->executor->stopped && (!d->ahead || pieces_are_idle(ps, SEGMENT)) &&
	    !pieces_find(ps, d->target->entry, SEGMENT, number))
		p = keeper_piece(d, number);
	if (p)
		d->pass->at++;
	pieces_leave(ps);
	if (p)
		d->failed = pass_segment(d, number, p, &why) != KPACK_SUCCESS;
	return p && !d->failed;
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
	bool again = err && wants_more(d), ahead;

	pieces_enter(&m->pieces);
	ahead = d->target->ahead;
	if (d->pass)
		d->pass->ended |= err || d->failed || at_end(d);
	if (again)
		pieces_defer(&m->pieces, d->target, pieces_window(&m->pieces));
	else if (err)
		failed = decoding_fail(m, d->target, why);
	if (d->pass)
		pieces_release(&m->pieces, d->pass);
	if (!again) {
		d->target->origin = NULL;
		pieces_unpin(&m->pieces, d->target);
	}
	pieces_leave(&m->pieces);
	buffers_put(&m->pieces.buffers, d->scratch);
	if (err && !again && !ahead)
		decoding_report(m, d->what, why);
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
	requests_serve(m, woken);
}

static void drive_pass(struct decoding *m, struct piece *p)
{
	struct drive d = {
		.m = m, .pass = p->pass, .target = p, .what = decoding_entry(p)};
	struct kpackx_error why = {0};
	struct kp_entry_info info;
	kpack_error_t err;

	pieces_enter(&m->pieces);
	d.ahead = p->ahead;
	pieces_leave(&m->pieces);
	kp_archive_entry(d.what.origin->archive, d.what.entry, &info);
	d.size = info.size;
	err = reach_target(&d, &why);
	if (!err) {
		serve_target(&d);
		/*
		 * A failure here is reported to the requests for those bytes; for the
		 * target it only ends the pass.
		 */
		while (go_on(&d))
			;
	}
	end_drive(&d, err, &why);
}

/* Bytes that decoding P at once holds besides P's. */
static uint64_t decoder_memory(const struct piece *p)
{
	struct origin_entry what = decoding_entry(p);
	struct kp_entry_info info;

	if (p->size <= INLINE_MAX || p->kind == PIECE_PLAIN)
		return 0;
	if (p->kind == PIECE_WHOLE)
		return kp_decode_memory(what.origin->archive, what.entry);
	kp_archive_entry(what.origin->archive, what.entry, &info);
	/* the stored bytes of the chunk, which are not yet known exactly */
	return info.stored * p->size / info.size;
}

/* Charge what P's decoder holds; false: there is no room, and P waits for it. */
static bool charge_decoder(struct decoding *m, struct piece *p)
{
	uint64_t bytes = p->beside ? 0 : decoder_memory(p);
	bool room;

	if (!bytes)
		return true;
	pieces_enter(&m->pieces);
	room = pieces_add_beside(&m->pieces, p, bytes);
	pieces_leave(&m->pieces);
	return room;
}

void drive_piece(struct decoding *m, struct piece *p)
{
	if (p->kind == PIECE_SEGMENT)
		drive_pass(m, p);
	else if (!charge_decoder(m, p))
		return;
	else if (p->kind == PIECE_WHOLE && p->size > INLINE_MAX)
		drive_stream(m, p);
	else
		requests_serve(m, decoding_produce(m, p));
}
