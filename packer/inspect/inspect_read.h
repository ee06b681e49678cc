/* SPDX-License-Identifier: MIT */
/*
 * Reading the images of a file: all once, on several threads and in bounded memory, with
 * results in the order of the rows (inspect_walk); and collecting facts about each image and
 * each compressed container meanwhile (inspect_look).
 */
#ifndef PACKER_INSPECT_INSPECT_READ_H
#define PACKER_INSPECT_INSPECT_READ_H

#include "core/format/format.h"
#include "inspect_file.h"
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

/* A container's version, its compression, and whether its content matches its hash. */
struct inspect_packed {
	unsigned version;   /* 0: the format has none, or it was not decoded */
	const char *method; /* NULL: not compressed */
	bool has_hash;
	uint64_t hash;
	bool hash_ok;
};

/*
 * Fill OUT for container C in SRC, which was decoded to PAYLOAD.  For formats without
 * versions OUT stays as it is.  INVALID_FORMAT: the hash differs; OUT is filled
 * nevertheless.
 */
kpack_error_t inspect_packed_read(const struct kp_source *src,
				  const struct kp_container *c,
				  const struct kp_payload *payload,
				  struct inspect_packed *out, struct kpackx_error *why);

/* Facts about an image. */
struct inspect_seen {
	const char *type; /* NULL: it could not be read */
	bool in_file;
	uint64_t offset;               /* in the file, where in_file */
	char sha256[DIGEST_TEXT];      /* "" if it is unknown */
	char arch[KP_TARGET_TEXT_MAX]; /* see inspect_arch */
	struct kp_object *object;      /* NULL: not read, or freed already */
	size_t n_kernels;
	char *text; /* made by finish() */
};

struct inspect_look {
	struct inspect_file *file;
	struct inspect_seen *seen;     /* per image */
	struct inspect_packed *packed; /* per container */
	/*
	 * finish: prepare the output for IMAGE, on any thread, so that OBJECT can be
	 * freed.
	 * done: print the rows that JOB completes; called in order.
	 */
	void (*finish)(struct inspect_look *look, size_t image);
	void (*done)(struct inspect_look *look, const struct inspect_job *job);
	void *arg; /* for finish and done */
};

kpack_error_t inspect_look_run(struct inspect_look *look, struct kpackx_error *why);
void inspect_look_fini(struct inspect_look *look);

/* Free SEEN's object. */
void inspect_seen_drop(struct inspect_seen *seen);

#endif
