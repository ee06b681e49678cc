/* SPDX-License-Identifier: MIT */
/*
 * Read the leaves and the compressed containers of a file, and collect facts about them.
 */
#ifndef PACKER_INSPECT_LOOK_H
#define PACKER_INSPECT_LOOK_H

#include "core/format/format.h"
#include "file.h"
#include "packed.h"
#include "packer/cli/digest.h"

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
