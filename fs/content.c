/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include "content.h"
#include "limits.h"
#include "pieces.h"
#include "tables.h"

/* Bytes between two looks at who can be answered. */
#define STEP (256 << 10)

/* One read, on the reader's stack until it has to wait. */
struct request {
	struct request *next;
	content_answer *answer;
	void *token;
	struct origin_entry what; /* with a reference */
	bool parked;              /* on the heap */
	bool chunked;
	uint64_t size; /* of the file */
	uint64_t unit; /* bytes of a piece; the last may have fewer */
	uint64_t off;
	size_t len, done;
	uint8_t *gathered;   /* its bytes, when they come from several pieces */
	struct piece *ready; /* pinned: has the next bytes */
};

struct content {
	struct content_options options;
	struct tables tables;
	struct pieces pieces;
	struct content_stats stats; /* under the lock of pieces; held is theirs */

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

	pieces_pin(&c->pieces, p);
	p->served += n;
	r->ready = p;
	c->stats.bytes_served += n;
	c->stats.reads += r->done + n == r->len;
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

/* Publish that READY bytes are there and serve who waited for them. */
static bool progress(struct content *c, struct piece *p, uint64_t ready)
{
	struct request *list;
	bool stop;

	pieces_enter(&c->pieces);
	p->ready = ready;
	stop = c->pieces.stop;
	list = take_ready(c, p);
	pieces_leave(&c->pieces);
	run(c, list);
	return !stop;
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
		if (!err && ready < p->size && !progress(c, p, ready))
			err = kp_fail(why, KPACK_ERROR_IO_ERROR, "unmounted");
	}
	kp_stream_close(s);
	return err;
}

static kpack_error_t decode(struct content *c, struct piece *p, struct kpackx_error *why)
{
	struct origin_entry what = piece_entry(p);

	if (!pieces_back(&c->pieces, p))
		return kp_fail_memory(why, p->size, "decoded bytes");
	if (p->chunk)
		return decode_chunk(c, p, why);
	if (p->size > INLINE_MAX)
		return decode_stream(c, p, what, why);
	return kp_archive_read(what.origin->archive, what.entry, p->buffer.data, why);
}

/* Decode P, which was admitted; returns the requests that can go on. */
static struct request *produce(struct content *c, struct piece *p)
{
	struct kpackx_error why = {0};
	kpack_error_t err = decode(c, p, &why);
	struct origin_entry what = piece_entry(p);
	struct request *failed = NULL, *woken = NULL;
	bool stop;

	pieces_enter(&c->pieces);
	stop = c->pieces.stop;
	p->origin = NULL;
	pieces_done(&c->pieces, p, err);
	if (err) {
		c->stats.errors += !stop;
		failed = p->parked;
		p->parked = NULL;
	} else {
		c->stats.decodes++;
		c->stats.bytes_decoded += p->size;
		woken = take_ready(c, p);
	}
	pieces_unpin(&c->pieces, p);
	pieces_leave(&c->pieces);
	if (err && !stop)
		c->options.failure(c->options.user, what, &why);
	fail_all(failed, &why);
	origin_unref(what.origin);
	return woken;
}

/* A piece for the next bytes of R. */
static struct piece *piece_for(struct content *c, const struct request *r)
{
	uint64_t number = next_number(r), left = r->size - number * r->unit;
	struct piece *p = pieces_add(&c->pieces, key_of(r->what), number,
				     left < r->unit ? left : r->unit);

	if (!p)
		return NULL;
	p->chunk = r->chunked;
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
	struct piece *p = pieces_find(&c->pieces, key_of(r->what), next_number(r));

	if (p && can_serve(p, r)) {
		make_ready(c, r, p);
		return READY;
	}
	if (!p) {
		p = piece_for(c, r);
		if (!p)
			return NO_MEMORY;
		if (p->size <= INLINE_MAX && pieces_admit(&c->pieces, p)) {
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
	r.chunked = meta.chunk != 0;
	if (r.chunked && (meta.chunk < KP_CHUNK_MIN || meta.chunk > KP_CHUNK_MAX)) {
		kp_fail(&why, KPACK_ERROR_INVALID_FORMAT, "chunk size %llu",
			(unsigned long long)meta.chunk);
		c->options.failure(c->options.user, what, &why);
		answer(token, NULL, 0, &why);
		return;
	}
	r.size = info.size;
	r.unit = r.chunked ? meta.chunk : info.size;
	r.len = len < info.size - off ? len : (size_t)(info.size - off);
	origin_ref(what.origin);
	run(c, &r);
}

void content_stats(struct content *c, struct content_stats *out)
{
	pieces_enter(&c->pieces);
	*out = c->stats;
	out->held = c->pieces.held;
	pieces_leave(&c->pieces);
}

/* Threads. */

static void *decoder(void *arg)
{
	struct content *c = arg;
	struct piece *p;

	while ((p = pieces_take(&c->pieces)))
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
	free(c);
}
