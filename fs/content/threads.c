/* SPDX-License-Identifier: MIT */
/* The executor that a mount has: a thread for each job, and several for decoding. */
#include "content.h"
#include <signal.h>
#include <stdlib.h>
#include <time.h>

struct threads {
	struct executor executor; /* the first field */
	bool (*run)(void *arg, enum executor_job job);
	void *arg;
	pthread_cond_t woken[JOBS];
	pthread_t janitor;
	bool has_janitor;
	unsigned n_decoders, decoders_wanted;
	pthread_t decoders[];
};

static void *decode(void *threads)
{
	struct threads *t = threads;

	while (t->run(t->arg, JOB_DECODE))
		continue;
	return NULL;
}

static void *tend(void *threads)
{
	struct threads *t = threads;

	while (t->run(t->arg, JOB_TEND))
		continue;
	return NULL;
}

/* All signals are blocked in the threads: the thread with the main loop takes them. */
static bool start_threads(struct executor *e,
			  bool (*run)(void *arg, enum executor_job job), void *arg)
{
	struct threads *t = (struct threads *)e;
	sigset_t all, old;
	bool ok;

	t->run = run;
	t->arg = arg;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ok = t->has_janitor = pthread_create(&t->janitor, NULL, tend, t) == 0;
	while (ok && t->n_decoders < t->decoders_wanted) {
		ok = pthread_create(&t->decoders[t->n_decoders], NULL, decode, t) == 0;
		t->n_decoders += ok;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ok || t->n_decoders;
}

static void wait_until_woken(struct executor *e, enum executor_job job,
			     pthread_mutex_t *lock, unsigned seconds)
{
	struct threads *t = (struct threads *)e;
	struct timespec end;

	if (!seconds) {
		pthread_cond_wait(&t->woken[job], lock);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += seconds;
	end.tv_nsec = 0; /* all such waits of the system end together */
	pthread_cond_timedwait(&t->woken[job], lock, &end);
}

static void wake_one(struct executor *e, enum executor_job job)
{
	pthread_cond_signal(&((struct threads *)e)->woken[job]);
}

static void end_threads(struct executor *e, pthread_mutex_t *lock)
{
	struct threads *t = (struct threads *)e;

	pthread_mutex_lock(lock);
	e->stopped = true;
	for (int job = 0; job < JOBS; job++)
		pthread_cond_broadcast(&t->woken[job]);
	pthread_mutex_unlock(lock);
	if (t->has_janitor)
		pthread_join(t->janitor, NULL);
	for (unsigned i = 0; i < t->n_decoders; i++)
		pthread_join(t->decoders[i], NULL);
	for (int job = 0; job < JOBS; job++)
		pthread_cond_destroy(&t->woken[job]);
	free(t);
}

struct executor *executor_threads(unsigned decoders)
{
	struct threads *t = calloc(1, sizeof(*t) + decoders * sizeof(*t->decoders));
	pthread_condattr_t monotonic;

	if (!t)
		return NULL;
	t->executor = (struct executor){start_threads, wait_until_woken, wake_one,
					end_threads, false};
	t->decoders_wanted = decoders;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	for (int job = 0; job < JOBS; job++)
		pthread_cond_init(&t->woken[job], &monotonic);
	pthread_condattr_destroy(&monotonic);
	return &t->executor;
}
