/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "pieces.h"

#define PAGE 4096
/* Seconds an unused piece stays when all its bytes were served, or not all. */
#define SPENT_SECONDS 2
#define IDLE_SECONDS 60
/* Bytes of pieces served whole that stay for readers close behind; then the oldest goes. */
#define SPENT_MAX (32 << 20)
/* Seconds without a decode after which memory kept for the next one is given back. */
#define KEEP_SECONDS 2

/* Lists. */

static void list_add(struct piece_list *l, struct piece *p)
{
	p->list = l;
	p->prev = l->last;
	p->next = NULL;
	*(l->last ? &l->last->next : &l->first) = p;
	l->last = p;
}

static void list_remove(struct piece *p)
{
	struct piece_list *l = p->list;

	if (!l)
		return;
	*(p->prev ? &p->prev->next : &l->first) = p->next;
	*(p->next ? &p->next->prev : &l->last) = p->prev;
	p->list = NULL;
}

static time_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* The lock.  Buffers are given back to the system without it: that takes milliseconds. */

void pieces_enter(struct pieces *ps)
{
	pthread_mutex_lock(&ps->lock);
}

void pieces_leave(struct pieces *ps)
{
	struct piece *p = ps->dead, *next;

	ps->dead = NULL;
	pthread_mutex_unlock(&ps->lock);
	for (; p; p = next) {
		next = p->next;
		buffers_put(&ps->buffers, p->buffer);
		free(p);
	}
}

/* The table of pieces. */

static struct piece **bucket(struct pieces *ps, uint64_t entry, uint64_t number)
{
	uint64_t h = (entry + number * UINT64_C(0xff51afd7ed558ccd)) *
		     UINT64_C(0x9e3779b97f4a7c15);

	return &ps->buckets[h >> (64 - BUCKETS_LOG2)];
}

struct piece *pieces_find(struct pieces *ps, uint64_t entry, uint64_t number)
{
	struct piece *p = *bucket(ps, entry, number);

	while (p && (p->entry != entry || p->number != number))
		p = p->same_bucket;
	return p;
}

struct piece *pieces_add(struct pieces *ps, uint64_t entry, uint64_t number,
			 uint64_t size)
{
	struct piece *p = calloc(1, sizeof(*p)), **at;

	if (!p)
		return NULL;
	p->entry = entry;
	p->number = number;
	p->size = size;
	at = bucket(ps, entry, number);
	p->same_bucket = *at;
	*at = p;
	return p;
}

static void forget(struct pieces *ps, struct piece *p)
{
	struct piece **at = bucket(ps, p->entry, p->number);

	while (*at != p)
		at = &(*at)->same_bucket;
	*at = p->same_bucket;
}

/* Memory.  A piece is charged when it is admitted and until it is buried. */

static uint64_t cost(const struct piece *p)
{
	return (p->size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

static void bury(struct pieces *ps, struct piece *p)
{
	ps->held -= cost(p);
	p->next = ps->dead;
	ps->dead = p;
	if (ps->queue.first)
		pthread_cond_signal(&ps->work);
}

/* Take P out of the list it is in. */
static void unlist(struct pieces *ps, struct piece *p)
{
	if (p->list == &ps->spent)
		ps->spent_bytes -= cost(p);
	list_remove(p);
}

static void evict(struct pieces *ps, struct piece *p)
{
	unlist(ps, p);
	forget(ps, p);
	bury(ps, p);
}

static bool fits(const struct pieces *ps, uint64_t more)
{
	return ps->held <= ps->budget && more <= ps->budget - ps->held;
}

/* Charge P and let it run, if there is room or nothing else is in use. */
static bool admit(struct pieces *ps, struct piece *p)
{
	while (!fits(ps, cost(p)) && (ps->spent.first || ps->rested.first))
		evict(ps, ps->spent.first ? ps->spent.first : ps->rested.first);
	if (!fits(ps, cost(p)) && ps->active)
		return false;
	ps->held += cost(p);
	ps->active++;
	p->pins++;
	return true;
}

bool pieces_admit(struct pieces *ps, struct piece *p)
{
	return !ps->starved && admit(ps, p);
}

bool pieces_back(struct pieces *ps, struct piece *p)
{
	return buffers_get(&ps->buffers, p->size, &p->buffer);
}

void pieces_done(struct pieces *ps, struct piece *p, bool failed)
{
	ps->decoded = now();
	if (!ps->keeping)
		pthread_cond_signal(&ps->idle);
	ps->keeping = true;
	p->failed = failed;
	if (failed)
		forget(ps, p);
	else
		p->ready = p->size;
}

/* Pins. */

static void rest(struct pieces *ps, struct piece *p)
{
	bool first = !ps->spent.first && !ps->rested.first;
	bool spent = p->served >= p->size;

	p->used = now();
	list_add(spent ? &ps->spent : &ps->rested, p);
	if (first)
		pthread_cond_signal(&ps->idle);
	if (!spent)
		return;
	ps->spent_bytes += cost(p);
	while (ps->spent_bytes > SPENT_MAX && ps->spent.first != p)
		evict(ps, ps->spent.first);
}

void pieces_pin(struct pieces *ps, struct piece *p)
{
	unlist(ps, p);
	ps->active += p->pins == 0;
	p->pins++;
}

void pieces_unpin(struct pieces *ps, struct piece *p)
{
	if (--p->pins)
		return;
	ps->active--;
	if (p->failed)
		bury(ps, p);
	else if (p->served >= p->size && p->size <= INLINE_MAX)
		evict(ps, p);
	else
		rest(ps, p);
	if (ps->starved)
		pthread_cond_signal(&ps->work);
}

/* The queue. */

void pieces_queue(struct pieces *ps, struct piece *p)
{
	list_add(&ps->queue, p);
	pthread_cond_signal(&ps->work);
}

/* The next piece that may be decoded now, or NULL. */
static struct piece *next_job(struct pieces *ps)
{
	struct piece *p = ps->queue.first;

	ps->starved = p && !admit(ps, p);
	if (!p || ps->starved)
		return NULL;
	list_remove(p);
	if (ps->queue.first)
		pthread_cond_signal(&ps->work);
	return p;
}

struct piece *pieces_take(struct pieces *ps)
{
	struct piece *p = NULL;

	pieces_enter(ps);
	while (!ps->stop && !(p = next_job(ps))) {
		if (!ps->dead) {
			pthread_cond_wait(&ps->work, &ps->lock);
			continue;
		}
		/* Free before waiting. */
		pieces_leave(ps);
		pieces_enter(ps);
	}
	pieces_leave(ps);
	return p;
}

/* Time. */

static void expire(struct pieces *ps, struct piece_list *l, time_t before)
{
	while (l->first && l->first->used <= before)
		evict(ps, l->first);
}

void pieces_tend(struct pieces *ps)
{
	pieces_enter(ps);
	while (!ps->stop) {
		struct timespec next = {.tv_sec = now() + 1};
		bool trim;

		if (!ps->spent.first && !ps->rested.first && !ps->keeping) {
			pthread_cond_wait(&ps->idle, &ps->lock);
			continue;
		}
		pthread_cond_timedwait(&ps->idle, &ps->lock, &next);
		expire(ps, &ps->spent, now() - SPENT_SECONDS);
		expire(ps, &ps->rested, now() - IDLE_SECONDS);
		trim = ps->keeping && ps->decoded < now() - KEEP_SECONDS;
		ps->keeping = ps->keeping && !trim;
		pieces_leave(ps);
		if (trim)
			buffers_trim(&ps->buffers);
		pieces_enter(ps);
	}
	pieces_leave(ps);
}

void pieces_stop(struct pieces *ps)
{
	pieces_enter(ps);
	ps->stop = true;
	pthread_cond_broadcast(&ps->work);
	pthread_cond_broadcast(&ps->idle);
	pieces_leave(ps);
}

void pieces_init(struct pieces *ps, uint64_t budget)
{
	pthread_condattr_t monotonic;

	*ps = (struct pieces){.budget = budget};
	buffers_init(&ps->buffers);
	pthread_mutex_init(&ps->lock, NULL);
	pthread_cond_init(&ps->work, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&ps->idle, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

void pieces_fini(struct pieces *ps)
{
	for (size_t i = 0; i < sizeof(ps->buckets) / sizeof(*ps->buckets); i++) {
		struct piece *p = ps->buckets[i], *next;

		for (; p; p = next) {
			next = p->same_bucket;
			buffers_put(&ps->buffers, p->buffer);
			free(p);
		}
	}
	buffers_fini(&ps->buffers);
	pthread_cond_destroy(&ps->idle);
	pthread_cond_destroy(&ps->work);
	pthread_mutex_destroy(&ps->lock);
}
