/* SPDX-License-Identifier: MIT */
/*
 * Read all leaves of a file once, on several threads and in bounded memory; results are
 * taken in the order of the rows.
 */
#ifndef PACKER_INSPECT_WALK_H
#define PACKER_INSPECT_WALK_H

#include "file.h"
#include "packer/cli/digest.h"

/* The private state of a thread. */
struct inspect_thread {
	uint8_t *buf;
	size_t cap;
	struct digest hash;
};

struct inspect_walk {
	struct inspect_file *file;
	void *arg; /* for the functions */

	/*
	 * Process IMAGE, whose bytes are SRC, on any thread.  A failure is reported and
	 * the walk goes on; only OUT_OF_MEMORY ends it.
	 */
	kpack_error_t (*leaf)(void *arg, struct inspect_thread *thread, size_t image,
			      const struct kp_source *src, struct kpackx_error *why);
	/*
	 * CONTAINER, which is in SRC, was decoded to PAYLOAD; called on any thread.
	 * Failures as for leaf.  May be NULL.
	 */
	kpack_error_t (*decoded)(void *arg, size_t container, const struct kp_source *src,
				 const struct kp_payload *payload,
				 struct kpackx_error *why);
	/* JOB and all jobs before it are complete.  May be NULL. */
	void (*done)(void *arg, const struct inspect_job *job);
};

kpack_error_t inspect_walk_run(const struct inspect_walk *walk, struct kpackx_error *why);

/* THREAD's buffer, with room for SIZE bytes; NULL: out of memory. */
uint8_t *inspect_thread_room(struct inspect_thread *thread, size_t size);

#endif
