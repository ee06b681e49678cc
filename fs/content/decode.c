/* SPDX-License-Identifier: MIT */
#include "decode.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/alloc.h"
#include "fs/base/clock.h"
#include "counters.h"

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

struct origin_entry decoding_entry(const struct piece *p)
{
	return (struct origin_entry){p->origin, (size_t)(p->entry & UINT32_MAX)};
}

static kpack_error_t decode_chunk(struct decoding *m, struct piece *p,
				  struct kpackx_error *why)
{
	struct table *t;
	kpack_error_t err;

	KP_TRY(chunk_tables_get(&m->tables, decoding_entry(p), &t, why));
	/* Core checked at open that the table agrees with the metadata and the size. */
	err = kp_chunks_read(t->chunks, p->number, p->buffer.data, why);
	chunk_tables_put(&m->tables, t);
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

static kpack_error_t decode_at_once(struct decoding *m, struct origin_entry what,
				    uint8_t *buf, struct kpackx_error *why)
{
	struct kp_decode *d;
	uint64_t done;
	kpack_error_t err;

	KP_TRY(decoders_open(&m->pieces.decoders, what, KP_DECODE_FAST, UINT64_MAX, &d,
			     why));
	err = kp_decode_next(d, buf, UINT64_MAX, &done, why);
	decoders_close(&m->pieces.decoders, d);
	return err;
}

static kpack_error_t decode_bytes(struct decoding *m, struct piece *p,
				  struct kpackx_error *why)
{
	struct origin_entry what = decoding_entry(p);

	if (!pieces_back(&m->pieces, p))
		return kp_fail_memory(why, p->size, "decoded bytes");
	if (p->kind == PIECE_CHUNK)
		return decode_chunk(m, p, why);
	if (p->kind == PIECE_PLAIN)
		return read_plain(p, what, why);
	return decode_at_once(m, what, p->buffer.data, why);
}

static kpack_error_t decode_piece(struct decoding *m, struct piece *p,
				  struct kpackx_error *why)
{
	kpack_error_t err, changed;

	KP_TRY(decoding_check(m, p->origin, why));
	err = decode_bytes(m, p, why);
	changed = decoding_check(m, p->origin, why); /* if so, that is the cause */
	/* last: the file may have been written to meanwhile */
	if (!err && !changed && p->kind != PIECE_WHOLE)
		err = kp_archive_check_parts(p->origin->archive, decoding_entry(p).entry,
					     pieces_window(&m->pieces), why);
	return changed ? changed : err;
}

struct request *decoding_fail(struct decoding *m, struct piece *p,
			      const struct kpackx_error *why)
{
	struct request *failed = p->parked;

	p->parked = NULL;
	pieces_done(&m->pieces, p, true);
	if (!m->pieces.executor->stopped && !p->ahead)
		counters_fault(&m->stats, why, atomic_load(&p->origin->changed));
	return failed;
}

void decoding_report(struct decoding *m, struct origin_entry what,
		     const struct kpackx_error *why)
{
	bool stop;

	pieces_enter(&m->pieces);
	stop = m->pieces.executor->stopped;
	pieces_leave(&m->pieces);
	if (!stop)
		m->options->failure(m->options->user, what, why);
}

struct request *decoding_finish(struct decoding *m, struct piece *p, uint64_t since,
				kpack_error_t err, const struct kpackx_error *why)
{
	struct origin_entry what = decoding_entry(p);
	struct request *failed = NULL, *woken = NULL;
	bool ahead;

	pieces_enter(&m->pieces);
	ahead = p->ahead;
	if (err) {
		failed = decoding_fail(m, p, why);
	} else {
		pieces_done(&m->pieces, p, false);
		counters_decode(&m->stats, p->size, since);
		woken = requests_take(&m->pieces, &m->stats, p);
	}
	p->origin = NULL;
	pieces_unpin(&m->pieces, p);
	pieces_leave(&m->pieces);
	if (err && !ahead)
		decoding_report(m, what, why);
	requests_fail(failed, why);
	origin_unref(what.origin);
	return woken;
}

struct request *decoding_produce(struct decoding *m, struct piece *p)
{
	struct kpackx_error why = {0};
	uint64_t since = clock_ns();
	kpack_error_t err = decode_piece(m, p, &why);

	return decoding_finish(m, p, since, err, &why);
}

void decoding_init(struct decoding *m, const struct content_options *options)
{
	*m = (struct decoding){.options = options};
	chunk_tables_init(&m->tables);
	pieces_init(&m->pieces, options->budget, options->executor);
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
