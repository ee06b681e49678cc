/* SPDX-License-Identifier: MIT */
#include "forget_names.h"
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#define NAMES_MAX 16

/*
 * Seconds to wait after a look-up: most programs have read the file by then.  As long as
 * the kernel keeps the name, it is asked again, each time after twice as long.
 */
#define MOMENT 1
#define MOMENTS_MAX 64

struct kept_name {
	const char *name;
	unsigned count; /* look-ups that the kernel has not forgotten */
};

struct forget_names {
	forget_names_notify *notify;
	void *user;
	pthread_mutex_t lock; /* guards everything below */
	pthread_cond_t wake;
	struct kept_name names[NAMES_MAX];
	size_t n_names;
	unsigned kept; /* the sum of their counts */
	unsigned wait; /* seconds until the kernel is asked */
	pthread_t thread;
	bool running, stop;
};

/* Wait until the kernel has to be asked; false: stopped. */
static bool await_names(struct forget_names *t)
{
	struct timespec until;
	unsigned wait;

	do {
		while (!t->kept && !t->stop)
			pthread_cond_wait(&t->wake, &t->lock);
		wait = t->wait;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += wait;
		while (!t->stop && t->wait == wait &&
		       pthread_cond_timedwait(&t->wake, &t->lock, &until) == 0)
			;
	} while (!t->stop && t->wait != wait);
	return !t->stop;
}

static void *run_thread(void *arg)
{
	struct forget_names *t = arg;

	pthread_mutex_lock(&t->lock);
	while (await_names(t)) {
		if (t->wait < MOMENTS_MAX)
			t->wait *= 2;
		for (size_t i = 0; i < t->n_names; i++) {
			const char *name = t->names[i].name;

			if (!t->names[i].count)
				continue;
			pthread_mutex_unlock(&t->lock);
			t->notify(t->user, name);
			pthread_mutex_lock(&t->lock);
		}
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

struct forget_names *forget_names_new(forget_names_notify *notify, void *user)
{
	struct forget_names *t = calloc(1, sizeof(*t));
	pthread_condattr_t clock;

	if (!t)
		return NULL;
	t->notify = notify;
	t->user = user;
	t->wait = MOMENT;
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&t->wake, &clock);
	pthread_condattr_destroy(&clock);
	return t;
}

void forget_names_free(struct forget_names *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
	if (t->running)
		pthread_join(t->thread, NULL);
	pthread_cond_destroy(&t->wake);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/*
 * Start the thread, with all signals blocked: the thread with the main loop takes them.
 */
static void start_thread(struct forget_names *t)
{
	sigset_t all, old;

	if (t->running)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	t->running = pthread_create(&t->thread, NULL, run_thread, t) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static struct kept_name *find_name(struct forget_names *t, const char *name)
{
	size_t i = 0;

	while (i < t->n_names && t->names[i].name != name)
		i++;
	if (i == NAMES_MAX)
		return NULL;
	if (i == t->n_names)
		t->names[t->n_names++] = (struct kept_name){name, 0};
	return &t->names[i];
}

void forget_names_note(struct forget_names *t, const char *name)
{
	struct kept_name *k;

	pthread_mutex_lock(&t->lock);
	k = find_name(t, name);
	if (k) {
		k->count++;
		t->kept++;
		t->wait = MOMENT;
		start_thread(t);
		pthread_cond_signal(&t->wake);
	}
	pthread_mutex_unlock(&t->lock);
}

void forget_names_gone(struct forget_names *t, const char *name)
{
	struct kept_name *k;

	pthread_mutex_lock(&t->lock);
	k = find_name(t, name);
	if (k && k->count) {
		k->count--;
		t->kept--;
	}
	pthread_mutex_unlock(&t->lock);
}
