/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include "buffer.h"
#include "content.h"
#include "limits.h"

/* Up to here the first reader decodes itself: faster than waking another thread. */
#define INLINE_MAX (256 << 10)
/* Bytes between two looks at who can be answered. */
#define STEP (256 << 10)
#define PAGE 4096
/* Seconds an unused piece stays when all its bytes were served, or not all. */
#define SPENT_SECONDS 2
#define IDLE_SECONDS 60
/* Bytes of pieces served whole that stay for readers close behind; then the oldest goes. */
#define SPENT_MAX (32 << 20)
/* Seconds without a decode after which memory kept for the next one is given back. */
#define KEEP_SECONDS 2
#define BUCKETS_LOG2 12
/* Tables of chunked entries that are kept open though unused. */
#define TABLES_MAX 32

/* One read, on the reader's stack until it has to wait. */
struct request {
	struct request *next;
	void *token;
	uint32_t file;
	bool parked; /* on the heap */
	bool chunked;
	uint64_t size; /* of the file */
	uint64_t unit; /* bytes of a piece; the last may have fewer */
	uint64_t off;
	size_t len, done;
	uint8_t *gathered;   /* its bytes, when they come from several pieces */
	struct piece *ready; /* pinned: has the next bytes */
};

enum state {
	QUEUED,  /* waits for a decoder; no buffer yet */
	RUNNING, /* somebody decodes it */
	DONE,
	FAILED, /* in no table; freed when the last pin goes */
};

struct piece {
	struct piece *same_bucket;
	struct list *list; /* where it is linked, or NULL */
	struct piece *prev, *next;
	enum state state;
	uint32_t file;
	uint64_t number;
	bool chunk;                   /* of a chunked entry; else the whole entry */
	uint64_t size, ready, served; /* bytes; served counts repeats */
	struct buffer buffer;
	unsigned pins; /* its decoder, and requests that copy from it */
	time_t used;
	struct request *parked;
};

struct list {
	struct piece *first, *last;
};

/* The open table of a chunked entry. */
struct table {
	struct table *next;
	uint32_t file;
	unsigned pins;
	struct kp_chunks *chunks;
};

struct content {
	const struct kp_view *view;
	struct content_options options;

	pthread_mutex_t lock; /* everything below */
	pthread_cond_t work;  /* the queue has a piece that may be admitted, or stop */
	pthread_cond_t idle;  /* something rests, or stop */
	bool stop;
	bool starved;    /* the head of the queue waits for memory: nobody overtakes it */
	unsigned active; /* pieces with pins: their memory cannot be had */
	struct piece *buckets[1 << BUCKETS_LOG2];
	struct list queue;
	struct list spent, rested; /* unused pieces, least recently used first */
	uint64_t spent_bytes;
	struct piece *dead;   /* to be freed when the lock is released */
	struct table *tables; /* most recently used first */
	struct content_stats stats;
	struct buffers buffers; /* has its own lock */
	bool keeping;           /* it may keep blocks */
	time_t decoded;         /* when the last decode ended */

	unsigned n_threads;
	pthread_t janitor;
	bool has_janitor;
	pthread_t threads[];
};

/* Lists. */

static void list_add(struct list *l, struct piece *p)
{
	p->list = l;
	p->prev = l->last;
	p->next = NULL;
	*(l->last ? &l->last->next : &l->first) = p;
	l->last = p;
}

static void list_remove(struct piece *p)
{
	struct list *l = p->list;

	if (!l)
		return;
	*(p->prev ? &p->prev->next : &l->first) = p->next;
	*(p->next ? &p->next->prev : &l->last) = p->prev;
	p->list = NULL;
}

/* Put the requests of MORE before LIST. */
static struct request *joined(struct request *more, struct request *list)
{
	struct request **end = &more;

	while (*end)
		end = &(*end)->next;
	*end = list;
	return more;
}

static time_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* The lock.  Buffers are given back to the system without it: that takes milliseconds. */

static void enter(struct content *c)
{
	pthread_mutex_lock(&c->lock);
}

static void leave(struct content *c)
{
	struct piece *p = c->dead, *next;

	c->dead = NULL;
	pthread_mutex_unlock(&c->lock);
	for (; p; p = next) {
		next = p->next;
		buffers_put(&c->buffers, p->buffer);
		free(p);
	}
}

/* The table of pieces. */

static struct piece **bucket(struct content *c, uint32_t file, uint64_t number)
{
	uint64_t h = (file + number * UINT64_C(0xff51afd7ed558ccd)) *
		     UINT64_C(0x9e3779b97f4a7c15);

	return &c->buckets[h >> (64 - BUCKETS_LOG2)];
}

static struct piece *find(struct content *c, uint32_t file, uint64_t number)
{
	struct piece *p = *bucket(c, file, number);

	while (p && (p->file != file || p->number != number))
		p = p->same_bucket;
	return p;
}

static void forget(struct content *c, struct piece *p)
{
	struct piece **at = bucket(c, p->file, p->number);

	while (*at != p)
		at = &(*at)->same_bucket;
	*at = p->same_bucket;
}

/* Memory.  A piece is charged when it is admitted and until it is buried. */

static uint64_t cost(const struct piece *p)
{
	return (p->size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

static void bury(struct content *c, struct piece *p)
{
	c->stats.held -= cost(p);
	p->next = c->dead;
	c->dead = p;
	if (c->queue.first)
		pthread_cond_signal(&c->work);
}

/* Take P out of the list it is in. */
static void unlist(struct content *c, struct piece *p)
{
	if (p->list == &c->spent)
		c->spent_bytes -= cost(p);
	list_remove(p);
}

static void evict(struct content *c, struct piece *p)
{
	unlist(c, p);
	forget(c, p);
	bury(c, p);
}

static bool fits(const struct content *c, uint64_t more)
{
	return c->stats.held <= c->options.budget &&
	       more <= c->options.budget - c->stats.held;
}

/* Charge P and let it run, if there is room or nothing else is in use. */
static bool admit(struct content *c, struct piece *p)
{
	while (!fits(c, cost(p)) && (c->spent.first || c->rested.first))
		evict(c, c->spent.first ? c->spent.first : c->rested.first);
	if (!fits(c, cost(p)) && c->active)
		return false;
	c->stats.held += cost(p);
	c->active++;
	p->state = RUNNING;
	p->pins++;
	return true;
}

static void rest(struct content *c, struct piece *p)
{
	bool first = !c->spent.first && !c->rested.first;
	bool spent = p->served >= p->size;

	p->used = now();
	list_add(spent ? &c->spent : &c->rested, p);
	if (first)
		pthread_cond_signal(&c->idle);
	if (!spent)
		return;
	c->spent_bytes += cost(p);
	while (c->spent_bytes > SPENT_MAX && c->spent.first != p)
		evict(c, c->spent.first);
}

static void unpin(struct content *c, struct piece *p)
{
	if (--p->pins)
		return;
	c->active--;
	if (p->state == FAILED)
		bury(c, p);
	else if (p->served >= p->size && p->size <= INLINE_MAX)
		evict(c, p); /* cheap to decode again */
	else
		rest(c, p);
	if (c->starved)
		pthread_cond_signal(&c->work);
}

/* Tables of chunked entries. */

static void drop_old_tables(struct content *c, struct table **dropped)
{
	struct table **at = &c->tables;
	unsigned count = 0;

	while (*at) {
		struct table *t = *at;

		if (++count <= TABLES_MAX || t->pins) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		t->next = *dropped;
		*dropped = t;
	}
}

static void close_tables(struct table *t)
{
	struct table *next;

	for (; t; t = next) {
		next = t->next;
		kp_chunks_close(t->chunks);
		free(t);
	}
}

static struct table *pin_table(struct content *c, uint32_t file)
{
	for (struct table **at = &c->tables; *at; at = &(*at)->next) {
		struct table *t = *at;

		if (t->file != file)
			continue;
		*at = t->next;
		t->next = c->tables;
		c->tables = t;
		t->pins++;
		return t;
	}
	return NULL;
}

/* Two threads may open the same table at once: one of them is thrown away. */
static kpack_error_t table_get(struct content *c, uint32_t file, struct table **out,
			       struct kpackx_error *why)
{
	struct table *t, *other, *dropped = NULL;
	struct kpack_archive *a;
	size_t entry;

	enter(c);
	*out = pin_table(c, file);
	leave(c);
	if (*out)
		return KPACK_SUCCESS;
	a = kp_view_entry(c->view, file, &entry);
	t = calloc(1, sizeof(*t));
	if (!t)
		return kp_fail_memory(why, sizeof(*t), "a chunk table");
	t->file = file;
	t->pins = 1;
	if (kp_chunks_open(a, entry, &t->chunks, why)) {
		free(t);
		return why->code;
	}
	enter(c);
	other = pin_table(c, file);
	if (!other) {
		t->next = c->tables;
		c->tables = t;
		drop_old_tables(c, &dropped);
	}
	leave(c);
	if (other)
		close_tables(t);
	close_tables(dropped);
	*out = other ? other : t;
	return KPACK_SUCCESS;
}

static void table_put(struct content *c, struct table *t)
{
	enter(c);
	t->pins--;
	leave(c);
}

/* Requests. */

static void request_free(struct request *r)
{
	free(r->gathered);
	if (r->parked)
		free(r);
}

static void fail(struct content *c, struct request *r, const struct kpackx_error *why)
{
	c->options.answer(r->token, NULL, 0, why);
	request_free(r);
}

static void fail_all(struct content *c, struct request *list,
		     const struct kpackx_error *why)
{
	struct request *next;

	for (; list; list = next) {
		next = list->next;
		fail(c, list, why);
	}
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

	unlist(c, p);
	c->active += p->pins == 0;
	p->pins++;
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
static bool give(struct content *c, struct request *r, const struct piece *p)
{
	const uint8_t *from = p->buffer.data + next_start(r);
	size_t n = next_len(r, p);

	if (n == r->len) {
		c->options.answer(r->token, from, n, NULL);
		request_free(r);
		return false;
	}
	if (!r->gathered)
		r->gathered = malloc(r->len);
	if (!r->gathered) {
		struct kpackx_error why = {0};

		kp_fail_memory(&why, r->len, "a read");
		fail(c, r, &why);
		return false;
	}
	memcpy(r->gathered + r->done, from, n);
	r->done += n;
	if (r->done < r->len)
		return true;
	c->options.answer(r->token, r->gathered, r->len, NULL);
	request_free(r);
	return false;
}

/* Decoding. */

static void run(struct content *c, struct request *list);

static kpack_error_t decode_chunk(struct content *c, struct piece *p,
				  struct kpackx_error *why)
{
	struct table *t;
	kpack_error_t err = table_get(c, p->file, &t, why);

	/* Core checked at open that the table agrees with the metadata and the size. */
	if (!err) {
		err = kp_chunks_read(t->chunks, p->number, p->buffer.data, why);
		table_put(c, t);
	}
	return err;
}

/* Publish that READY bytes are there and serve who waited for them. */
static bool progress(struct content *c, struct piece *p, uint64_t ready)
{
	struct request *list;
	bool stop;

	enter(c);
	p->ready = ready;
	stop = c->stop;
	list = take_ready(c, p);
	leave(c);
	run(c, list);
	return !stop;
}

static kpack_error_t decode_stream(struct content *c, struct piece *p,
				   struct kpack_archive *a, size_t entry,
				   struct kpackx_error *why)
{
	struct kp_stream *s = NULL;
	uint64_t ready = 0;
	kpack_error_t err = kp_stream_open(a, entry, p->buffer.data, &s, why);

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
	size_t entry;
	struct kpack_archive *a = kp_view_entry(c->view, p->file, &entry);

	if (!buffers_get(&c->buffers, p->size, &p->buffer))
		return kp_fail_memory(why, p->size, "decoded bytes");
	if (p->chunk)
		return decode_chunk(c, p, why);
	if (p->size > INLINE_MAX)
		return decode_stream(c, p, a, entry, why);
	return kp_archive_read(a, entry, p->buffer.data, why);
}

/* Decode P, which was admitted; returns the requests that can go on. */
static struct request *produce(struct content *c, struct piece *p)
{
	struct kpackx_error why = {0};
	kpack_error_t err = decode(c, p, &why);
	uint32_t file = p->file;
	struct request *failed = NULL, *woken = NULL;
	bool stop;

	enter(c);
	stop = c->stop;
	c->decoded = now();
	if (!c->keeping)
		pthread_cond_signal(&c->idle);
	c->keeping = true;
	if (err) {
		forget(c, p);
		p->state = FAILED;
		c->stats.errors += !stop;
		failed = p->parked;
		p->parked = NULL;
	} else {
		p->state = DONE;
		p->ready = p->size;
		c->stats.decodes++;
		c->stats.bytes_decoded += p->size;
		woken = take_ready(c, p);
	}
	unpin(c, p);
	leave(c);
	if (err && !stop)
		c->options.failure(c->options.user, file, &why);
	fail_all(c, failed, &why);
	return woken;
}

static struct piece *piece_new(struct content *c, const struct request *r)
{
	struct piece *p = calloc(1, sizeof(*p)), **at;
	uint64_t left;

	if (!p)
		return NULL;
	p->file = r->file;
	p->number = next_number(r);
	p->chunk = r->chunked;
	left = r->size - p->number * r->unit;
	p->size = left < r->unit ? left : r->unit;
	at = bucket(c, p->file, p->number);
	p->same_bucket = *at;
	*at = p;
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
	struct piece *p = find(c, r->file, next_number(r));

	if (p && can_serve(p, r)) {
		make_ready(c, r, p);
		return READY;
	}
	if (!p) {
		p = piece_new(c, r);
		if (!p)
			return NO_MEMORY;
		if (p->size <= INLINE_MAX && !c->starved && admit(c, p)) {
			/* Off the stack only if it must wait again: nobody else sees it.
			 */
			p->parked = r;
			*out = p;
			return DECODE;
		}
		list_add(&c->queue, p);
		pthread_cond_signal(&c->work);
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
		enter(c);
		claimed = claim(c, r, &p);
		leave(c);
	}
	if (claimed == DECODE)
		return produce(c, p);
	if (claimed == NO_MEMORY) {
		struct kpackx_error why = {0};

		kp_fail_memory(&why, sizeof(*p), "a read");
		fail(c, r, &why);
	}
	if (claimed != READY)
		return NULL;
	p = r->ready;
	r->ready = NULL;
	more = give(c, r, p);
	enter(c);
	unpin(c, p);
	leave(c);
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

void content_read(struct content *c, uint32_t file, uint64_t off, size_t len, void *token)
{
	struct request r = {.token = token, .file = file, .off = off};
	struct kpackx_error why = {0};
	struct kp_entry_info info;
	struct kp_meta meta;
	size_t entry;
	struct kpack_archive *a = kp_view_entry(c->view, file, &entry);

	kp_archive_entry(a, entry, &info);
	kp_archive_meta(a, entry, &meta);
	if (off >= info.size || len == 0) {
		c->options.answer(token, NULL, 0, NULL);
		return;
	}
	r.chunked = meta.chunk != 0;
	if (r.chunked && (meta.chunk < KP_CHUNK_MIN || meta.chunk > KP_CHUNK_MAX)) {
		kp_fail(&why, KPACK_ERROR_INVALID_FORMAT, "chunk size %llu",
			(unsigned long long)meta.chunk);
		c->options.failure(c->options.user, file, &why);
		c->options.answer(token, NULL, 0, &why);
		return;
	}
	r.size = info.size;
	r.unit = r.chunked ? meta.chunk : info.size;
	r.len = len < info.size - off ? len : (size_t)(info.size - off);
	run(c, &r);
}

void content_stats(struct content *c, struct content_stats *out)
{
	enter(c);
	*out = c->stats;
	leave(c);
}

/* Threads. */

/* The next piece that may be decoded now, or NULL. */
static struct piece *next_job(struct content *c)
{
	struct piece *p = c->queue.first;

	c->starved = p && !admit(c, p);
	if (!p || c->starved)
		return NULL;
	list_remove(p);
	if (c->queue.first)
		pthread_cond_signal(&c->work);
	return p;
}

static void *decoder(void *arg)
{
	struct content *c = arg;

	enter(c);
	while (!c->stop) {
		struct piece *p = next_job(c);

		if (!p && !c->dead) {
			pthread_cond_wait(&c->work, &c->lock);
			continue;
		}
		leave(c);
		if (p)
			run(c, produce(c, p));
		enter(c);
	}
	leave(c);
	return NULL;
}

static void expire(struct content *c, struct list *l, time_t before)
{
	while (l->first && l->first->used <= before)
		evict(c, l->first);
}

/* Gives memory back that nobody asks for. */
static void *janitor(void *arg)
{
	struct content *c = arg;

	enter(c);
	while (!c->stop) {
		struct timespec next = {.tv_sec = now() + 1};
		bool trim;

		if (!c->spent.first && !c->rested.first && !c->keeping) {
			pthread_cond_wait(&c->idle, &c->lock);
			continue;
		}
		pthread_cond_timedwait(&c->idle, &c->lock, &next);
		expire(c, &c->spent, now() - SPENT_SECONDS);
		expire(c, &c->rested, now() - IDLE_SECONDS);
		trim = c->keeping && c->decoded < now() - KEEP_SECONDS;
		c->keeping = c->keeping && !trim;
		leave(c);
		if (trim)
			buffers_trim(&c->buffers);
		enter(c);
	}
	leave(c);
	return NULL;
}

/* Signals are for the thread that runs the loop. */
static bool start(struct content *c)
{
	sigset_t all, old;
	bool ok;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ok = pthread_create(&c->janitor, NULL, janitor, c) == 0;
	c->has_janitor = ok;
	while (ok && c->n_threads < c->options.threads) {
		ok = pthread_create(&c->threads[c->n_threads], NULL, decoder, c) == 0;
		c->n_threads += ok;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ok || c->n_threads;
}

kpack_error_t content_new(const struct kp_view *view,
			  const struct content_options *options, struct content **out,
			  struct kpackx_error *why)
{
	size_t size = sizeof(struct content) + options->threads * sizeof(pthread_t);
	struct content *c = calloc(1, size);
	pthread_condattr_t monotonic;

	if (!c)
		return kp_fail_memory(why, size, "decoders");
	c->view = view;
	c->options = *options;
	buffers_init(&c->buffers);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->work, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&c->idle, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (!start(c)) {
		content_free(c);
		return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY, "cannot start threads");
	}
	*out = c;
	return KPACK_SUCCESS;
}

static void stop_threads(struct content *c)
{
	enter(c);
	c->stop = true;
	pthread_cond_broadcast(&c->work);
	pthread_cond_broadcast(&c->idle);
	leave(c);
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
	for (size_t i = 0; i < sizeof(c->buckets) / sizeof(*c->buckets); i++) {
		struct piece *p = c->buckets[i], *next;

		for (; p; p = next) {
			next = p->same_bucket;
			fail_all(c, p->parked, &why);
			buffers_put(&c->buffers, p->buffer);
			free(p);
		}
	}
	close_tables(c->tables);
	buffers_fini(&c->buffers);
	pthread_cond_destroy(&c->idle);
	pthread_cond_destroy(&c->work);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
