/* SPDX-License-Identifier: MIT */
#include "forget_names.h"
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#define NAMES_MAX 16

/* Seconds to wait after a look-up: most programs have read the file by then. */
#define MOMENT 1

struct forget_names {
	forget_names_notify *notify;
	void *user;
	pthread_mutex_t lock; /* guards everything below */
	pthread_cond_t wake;
	const char *names[NAMES_MAX]; /* names that were noted */
	size_t count;
	pthread_t thread;
	bool running, stop;
};

/* Wait until a name is noted, and then for a moment; false: stopped. */
static bool await_names(struct forget_names *t)
{
	struct timespec until;

	while (!t->count && !t->stop)
		pthread_cond_wait(&t->wake, &t->lock);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += MOMENT;
	while (!t->stop && pthread_cond_timedwait(&t->wake, &t->lock, &until) == 0)
		;
	return !t->stop;
}

static void *run_thread(void *arg)
{
	struct forget_names *t = arg;

	pthread_mutex_lock(&t->lock);
	while (await_names(t)) {
		while (t->count) {
			const char *name = t->names[--t->count];

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

void forget_names_note(struct forget_names *t, const char *name)
{
	size_t i = 0;

	pthread_mutex_lock(&t->lock);
	while (i < t->count && t->names[i] != name)
		i++;
	if (i == t->count && i < NAMES_MAX) {
		t->names[t->count++] = name;
		start_thread(t);
		if (t->count == 1)
			pthread_cond_signal(&t->wake);
	}
	pthread_mutex_unlock(&t->lock);
}
