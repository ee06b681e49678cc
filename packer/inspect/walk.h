/* SPDX-License-Identifier: MIT */
/*
 * All leaves of a file, each read once, on several threads and in bounded memory; what is
 * made of them is taken in the order of the rows.
 */
#ifndef PACKER_INSPECT_WALK_H
#define PACKER_INSPECT_WALK_H

#include "file.h"

struct sha256;

/* What a thread has for itself. */
struct inspect_thread {
	uint8_t *buf;
	size_t cap;
	struct sha256 *hash;
};

struct inspect_walk {
	struct inspect_file *file;
	void *arg; /* for the functions */

	/*
	 * Look at IMAGE, whose bytes are SRC, on any thread.  A failure is reported, and the walk
	 * goes on; only when memory is out it ends.
	 */
	kpack_error_t (*leaf)(void *arg, struct inspect_thread *thread, size_t image,
			      const struct kp_source *src, struct kpackx_error *why);
	/*
	 * CONTAINER, whose offset refers to SRC, was decoded to PAYLOAD; on any thread.
	 * Failures as above.  NULL when nobody wants to know.
	 */
	kpack_error_t (*decoded)(void *arg, size_t container, const struct kp_source *src,
				 const struct kp_payload *payload,
				 struct kpackx_error *why);
	/* JOB is complete, as are all before it.  NULL when nobody wants to know. */
	void (*done)(void *arg, const struct inspect_job *job);
};

kpack_error_t inspect_walk_run(const struct inspect_walk *walk, struct kpackx_error *why);

/* Room for SIZE bytes in THREAD's buffer; NULL: out of memory. */
uint8_t *inspect_thread_room(struct inspect_thread *thread, size_t size);

#endif
