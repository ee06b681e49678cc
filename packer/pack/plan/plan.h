/* SPDX-License-Identifier: MIT */
/* Which images of the scanned inputs are stored, under which keys, in which order. */
#ifndef PACKER_PACK_PLAN_PLAN_H
#define PACKER_PACK_PLAN_PLAN_H

#include "packer/pack/archives/archive_set.h"
#include "packer/archives/operands.h"
#include "packer/pack/scan/scan.h"

/* One image to store. */
struct plan_object {
	struct input *input;
	uint32_t image;
	uint32_t container; /* number among all planned containers */
	uint32_t binary;
	uint64_t chunk; /* stored in chunks of that size; 0: whole */
	/* of a database: its keys are [first_key, first_key + n_keys) */
	uint32_t first_key, n_keys;
};

/* A key of an object of a database, for an architecture. */
struct plan_key {
	const char *key, *arch;
	const struct facts *facts; /* what is said besides */
	uint32_t object;
};

/* The usual chunk: what a random read decodes, and little enough to lose little. */
#define PLAN_CHUNK (128 << 10)

/* What is stored in chunks, and of which size; 0: nothing. */
struct plan_chunks {
	uint64_t all;       /* every object larger than this */
	uint64_t at_random; /* larger files that are read at random, or are huge */
};

/* A container whose images are stored; the indices are the n of KEY#n. */
struct plan_container {
	uint32_t *indices;
	size_t n_indices;
};

/* An input, and what it needs of each architecture's archive. */
struct plan_binary {
	struct input *input;
	struct archive_need *needs;
	size_t n_needs;
	unsigned volume; /* that it stood in, or 1; then that it was stored in */
};

/* KEY#INDEX for an architecture. */
struct plan_name {
	uint32_t binary, index;
	const char *arch;
};

/*
 * Objects in the order of frames: by key, index, then architecture; those of databases by
 * their file's path among them.
 */
struct plan {
	struct plan_object *objects;
	size_t n_objects;
	struct plan_key *keys; /* in order of objects */
	size_t n_keys;
	uint32_t *by_key; /* numbers of keys, sorted by key, then architecture */
	struct plan_container *containers;
	size_t n_containers;
	struct plan_binary *binaries;
	size_t n_binaries;
	struct plan_name *names; /* sorted */
	size_t n_names;
	uint64_t bytes;  /* of all objects, decoded */
	size_t n_faults; /* inputs that cannot be packed; each was reported */
};

/*
 * Plan to store the device images of SCAN that FILTER selects, and its files of databases for
 * those and for every architecture.  SCAN must outlive the plan.
 * INVALID_ARGUMENT: two files of databases have the same key.
 */
kpack_error_t plan_open(const struct scan *scan, struct arch_filter *filter,
			const struct plan_chunks *chunks, struct plan *out,
			struct kpackx_error *why);
void plan_close(struct plan *plan);

/* The binary stored as KEY (without "#n"); false: there is none. */
bool plan_find(const struct plan *plan, struct kp_span key, uint32_t *binary);

/*
 * Will an entry KEY (with its "#n") be stored for ARCH, for which binary, and in which place
 * (see archive_set)?  A "@kind" in it is not looked at: whether an object gets one is known
 * when it is compared with the others.
 */
bool plan_stores(const struct plan *plan, struct kp_span key, struct kp_span arch,
		 uint32_t *binary, const char **place);

#endif
