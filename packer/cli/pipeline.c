/* SPDX-License-Identifier: MIT */
/*
 * Each thread takes the next job in their order, does it without the lock, and leaves the
 * result in the job's slot.  Whoever finishes the job whose turn it is commits it and the
 * finished ones behind it; meanwhile other threads leave their results and go on.  A job begins
 * only when the costs of all that are begun and not committed leave room for it in the budget;
 * when none is, it always begins, so that the run cannot stand still.
 *
 * After a failure no job begins, what was not committed is discarded, and the first failure in
 * time is the run's.
 */
#include "pipeline.h"
#include <pthread.h>
#include <stdlib.h>
#include "xalloc.h"

struct slot {
	void *result;
	uint64_t cost;
	bool done;
};

struct run {
	const struct pipeline *p;
	pthread_mutex_t lock; /* guards everything below */
	pthread_cond_t changed;
	struct slot *slots;
	size_t next;   /* job to begin next */
	size_t turn;   /* job to commit next */
	uint64_t held; /* cost of jobs begun and not committed */
	bool committing;
	kpack_error_t failed;
	struct kpackx_error why;
};

/* Remember the first failure.  Locked. */
static void fail_run(struct run *r, kpack_error_t err, const struct kpackx_error *why)
{
	if (!r->failed) {
		r->failed = err;
		r->why = *why;
	}
	pthread_cond_broadcast(&r->changed);
}

/* Wait for a job that fits into the budget.  Locked; false: no jobs left, or failed. */
static bool take_job(struct run *r, size_t *job)
{
	const struct pipeline *p = r->p;

	while (!r->failed && r->next < p->n_jobs) {
		uint64_t cost = p->cost ? p->cost(p->arg, r->next) : 0;

		if (r->held == 0 || r->held + cost <= p->budget) {
			*job = r->next++;
			r->slots[*job].cost = cost;
			r->held += cost;
			return true;
		}
		pthread_cond_wait(&r->changed, &r->lock);
	}
	return false;
}

/* Commit finished jobs at the head, unless another thread is committing.  Locked. */
static void commit_ready(struct run *r)
{
	const struct pipeline *p = r->p;

	while (!r->committing && !r->failed && r->turn < p->n_jobs &&
	       r->slots[r->turn].done) {
		struct slot *slot = &r->slots[r->turn];
		struct kpackx_error why = {0};
		void *result = slot->result;
		kpack_error_t err;

		slot->result = NULL;
		r->committing = true;
		pthread_mutex_unlock(&r->lock);
		err = p->commit ? p->commit(p->arg, r->turn, result, &why)
				: KPACK_SUCCESS;
		pthread_mutex_lock(&r->lock);
		r->committing = false;
		r->held -= slot->cost;
		r->turn += !err;
		if (err)
			fail_run(r, err, &why);
		pthread_cond_broadcast(&r->changed);
	}
}

/* A thread: jobs, one after the other, with a state of its own. */
static void *thread_main(void *arg)
{
	struct run *r = arg;
	const struct pipeline *p = r->p;
	struct kpackx_error why = {0};
	void *state = NULL;
	kpack_error_t err = p->begin ? p->begin(p->arg, &state, &why) : KPACK_SUCCESS;
	size_t job;

	pthread_mutex_lock(&r->lock);
	if (err) {
		state = NULL;
		fail_run(r, err, &why);
	}
	while (!err && take_job(r, &job)) {
		void *result = NULL;

		why = (struct kpackx_error){0};
		pthread_mutex_unlock(&r->lock);
		err = p->work(p->arg, state, job, &result, &why);
		pthread_mutex_lock(&r->lock);
		r->slots[job].result = result;
		r->slots[job].done = !err;
		if (err)
			fail_run(r, err, &why);
		commit_ready(r);
	}
	pthread_mutex_unlock(&r->lock);
	if (state && p->end)
		p->end(state);
	return NULL;
}

kpack_error_t pipeline_run(const struct pipeline *p, size_t *committed,
			   struct kpackx_error *why)
{
	struct run r = {
		.p = p,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
		.slots = xcalloc(p->n_jobs, sizeof(*r.slots)),
	};
	pthread_t *threads = xcalloc(p->threads, sizeof(*threads));
	unsigned started = 0;

	/* this thread works too, so a thread that cannot be started is no failure */
	while (started + 1 < p->threads &&
	       !pthread_create(&threads[started], NULL, thread_main, &r))
		started++;
	thread_main(&r);
	while (started)
		pthread_join(threads[--started], NULL);
	for (size_t i = 0; i < p->n_jobs; i++)
		if (r.slots[i].result)
			p->discard(p->arg, r.slots[i].result);
	free(r.slots);
	free(threads);
	pthread_cond_destroy(&r.changed);
	pthread_mutex_destroy(&r.lock);
	if (committed)
		*committed = r.turn;
	if (r.failed && why)
		*why = r.why;
	return r.failed;
}
