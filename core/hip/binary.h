/* SPDX-License-Identifier: MIT */
/*
 * Converted binaries of this process, and the archives that they reach.  The caller holds
 * the library's lock during every call.
 */
#ifndef KP_HIP_BINARY_H
#define KP_HIP_BINARY_H

#include "core/loader/lookup.h"
#include "gpus.h"

enum { BINARY_MOUNTED_MAX = 16 };

struct binary {
	struct binary *next;
	unsigned users;            /* registered wrappers */
	const void *marker;        /* the address, by which the binary is found again */
	bool is_unusable;          /* and was reported */
	struct kpackx_error fault; /* code 0: its marker and archives are known */
	char *path;                /* NULL: unknown */
	struct kp_marker facts;
	struct kp_lookup files; /* candidate archives; open ones stay open */
	struct kp_lookup_want want;
	char *mount; /* directory of a mount of its archives (mounts.h); NULL: none */
	dev_t mount_device; /* its files' */
	bool mount_sought;
	const struct kp_lookup_file
		*mounted[BINARY_MOUNTED_MAX]; /* archives that the mount lists */
	size_t n_mounted;
	bool *reported; /* for each GPU: it was reported that its code is missing */
};

/* What all binaries share; zeroed before the first use. */
struct binaries {
	bool started;
	struct kpackx_error fault; /* code 0: usable */
	struct kp_environment env;
	struct kp_cache cache;
	struct gpus gpus;
	const char *const *names; /* the targets of files for these GPUs */
	size_t n_names;
	struct binary *first;
};

/* Read the environment and find the GPUs, once.  The error of the first call stays. */
kpack_error_t binaries_start(struct binaries *all, struct kpackx_error *why);

/*
 * Return the binary with the marker at the address MARKER; unless *OUT is NULL, the caller
 * becomes a user of it and ends that with binary_put, on failure, too.
 * PATH_DISCOVERY_FAILED, INVALID_METADATA, OUT_OF_MEMORY, and ARCHIVE_NOT_FOUND in a
 * program with more rights than its user.
 */
kpack_error_t binary_get(struct binaries *all, const void *marker, struct binary **out,
			 struct kpackx_error *why);
void binary_put(struct binaries *all, struct binary *b);

#endif
