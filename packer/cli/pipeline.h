/* SPDX-License-Identifier: MIT */
/*
 * Do jobs on several threads, and take their results in order: read and compress in
 * parallel, write in sequence, with bounded memory.  The result does not depend on the
 * number of threads.
 */
#ifndef PACKER_BASE_PIPELINE_H
#define PACKER_BASE_PIPELINE_H

#include <stddef.h>
#include "core/base/errors.h"

struct pipeline {
	size_t n_jobs;
	unsigned threads;
	uint64_t budget; /* limit of the total cost of jobs begun but not committed */
	void *arg;       /* for the functions */

	/* Make and free the state that a thread keeps from job to job; NULL: none. */
	kpack_error_t (*begin)(void *arg, void **state, struct kpackx_error *why);
	void (*end)(void *state);

	/* Bytes that a job needs until it is committed; NULL: 0.  One job always runs. */
	uint64_t (*cost)(void *arg, size_t job);

	/* Do a job, on any thread. */
	kpack_error_t (*work)(void *arg, void *state, size_t job, void **result,
			      struct kpackx_error *why);

	/*
	 * Take over the result; called in the order of jobs, one at a time.  NULL: no job
	 * has a result.
	 */
	kpack_error_t (*commit)(void *arg, size_t job, void *result,
				struct kpackx_error *why);

	/* Free a result, which is not NULL, that is never committed because of a failure. */
	void (*discard)(void *arg, void *result);
};

/*
 * Run all jobs.  The first failure stops everything and is returned; *COMMITTED, unless it
 * is NULL, becomes the number of jobs whose results were taken over.
 */
kpack_error_t pipeline_run(const struct pipeline *p, size_t *committed,
			   struct kpackx_error *why);

#endif
