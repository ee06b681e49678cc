/* SPDX-License-Identifier: MIT */
/* What is found out about the leaves and the compressed containers of a file by reading them. */
#ifndef PACKER_INSPECT_LOOK_H
#define PACKER_INSPECT_LOOK_H

#include "core/format/object.h"
#include "file.h"
#include "packed.h"
#include "packer/base/sha256.h"

/* Facts about an image. */
struct inspect_seen {
	const char *type; /* NULL: it could not be read */
	bool in_file;
	uint64_t offset;               /* in the file, where in_file */
	char sha256[SHA256_TEXT];      /* "" when it is not known */
	char arch[KP_TARGET_TEXT_MAX]; /* what its container says, else what it says */
	struct kp_object *object;      /* NULL: given away already */
	size_t n_kernels;
	char *text; /* made by the finisher */
};

struct inspect_look {
	struct inspect_file *file;
	struct inspect_seen *seen;     /* per image */
	struct inspect_packed *packed; /* per container */
	/*
	 * Make what will be printed of IMAGE, on any thread, so that OBJECT can be freed; and
	 * print what is complete with JOB, in order.
	 */
	kpack_error_t (*finish)(struct inspect_look *look, size_t image,
				struct kpackx_error *why);
	void (*done)(struct inspect_look *look, const struct inspect_job *job);
	void *arg; /* of them */
};

kpack_error_t inspect_look_run(struct inspect_look *look, struct kpackx_error *why);
void inspect_look_fini(struct inspect_look *look);

/* Forget what the object says of itself. */
void inspect_seen_drop(struct inspect_seen *seen);

#endif
