/* SPDX-License-Identifier: MIT */
/*
 * What runs the jobs of a content, and lets them wait: threads, or in a test one job after
 * another.
 *
 * "The lock" is the one of the content's pieces.
 */
#ifndef FS_CONTENT_EXECUTOR_H
#define FS_CONTENT_EXECUTOR_H

#include <pthread.h>
#include <stdbool.h>

enum executor_job {
	JOB_DECODE, /* decode a piece that was queued */
	JOB_TEND,   /* free memory whose time is over */
	JOBS
};

struct executor {
	/*
	 * Without the lock, once: from now on call RUN(ARG, job) again and again, without
	 * the lock, until it returns false: several at once for JOB_DECODE, one for JOB_TEND.
	 * false: nothing could be started.
	 */
	bool (*start)(struct executor *e, bool (*run)(void *arg, enum executor_job job),
		      void *arg);

	/*
	 * Called by a job that has nothing to do, with LOCK, the lock: give it back, wait
	 * until the job is woken, the executor is ended, or SECONDS are over (0: no limit),
	 * and take it again.  As with a condition variable, it may return without a cause.
	 */
	void (*wait)(struct executor *e, enum executor_job job, pthread_mutex_t *lock,
		     unsigned seconds);

	/* With the lock: end one wait of a job of this kind, if there is one. */
	void (*wake)(struct executor *e, enum executor_job job);

	/*
	 * Without the lock, which LOCK is: set `stopped` with it, end all waits, and return
	 * when no job runs any more.  E is freed.  Called once, whatever start returned.
	 */
	void (*end)(struct executor *e, pthread_mutex_t *lock);

	bool stopped; /* jobs are to return soon; guarded by the lock */
};

/* One with DECODERS threads, at least 1, for JOB_DECODE.  NULL: no memory. */
struct executor *executor_threads(unsigned decoders);

#endif
