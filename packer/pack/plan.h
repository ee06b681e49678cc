/* SPDX-License-Identifier: MIT */
/*
 * The plan of a run's archives: which images of the scanned inputs are stored, under which keys,
 * in which order.
 */
#ifndef PACKER_PACK_PLAN_H
#define PACKER_PACK_PLAN_H

#include "archive_set.h"
#include "packer/archives/arch_filter.h"
#include "packer/scan/scan.h"

/* One image to store. */
struct plan_object {
	struct input *input;
	uint32_t image;
	uint32_t container; /* number among all planned containers */
	uint32_t binary;
	uint64_t chunk; /* size of the chunks it is stored in; 0: stored whole */
	/* an object of a database: its keys are [first_key, first_key + n_keys) */
	uint32_t first_key, n_keys;
};

/* A key of an object of a database, for an architecture. */
struct plan_key {
	const char *key, *arch;
	const struct facts *facts; /* further facts for its metadata */
	uint32_t object;
};

/*
 * The usual chunk size: a random read decodes one chunk, so it is small enough to waste
 * little.
 */
#define PLAN_CHUNK (128 << 10)

/* Chunk sizes of objects that are stored in chunks; 0: none are. */
struct plan_chunks {
	uint64_t all;       /* of every object larger than this */
	uint64_t at_random; /* of larger files that are read at random or are huge */
};

/* A container whose images are stored; the indices are the n of KEY#n. */
struct plan_container {
	uint32_t *indices;
	size_t n_indices, cap;
};

/* An input, and what it needs in each architecture's archive. */
struct plan_binary {
	struct input *input;
	const char *key; /* the input's */
	struct archive_need *needs;
	size_t n_needs;
	unsigned volume; /* the one it was in, or 1; after storing the one it is in */
};

/* The entry KEY#INDEX for an architecture. */
struct plan_name {
	uint32_t binary, index;
	const char *arch;
};

/*
 * Objects are in the order of frames: by key, index, then architecture; the objects of
 * databases are among them, by their file's path.
 */
struct plan {
	struct plan_object *objects;
	size_t n_objects;
	struct plan_key *keys; /* in the order of objects */
	size_t n_keys;
	struct plan_key *sorted_keys; /* the same by key, then architecture */
	struct plan_container *containers;
	size_t n_containers;
	struct plan_binary *binaries; /* by key */
	size_t n_binaries;
	struct plan_name *names; /* sorted */
	size_t n_names;
	uint64_t bytes;  /* of all objects, decoded */
	size_t n_faults; /* inputs that cannot be packed; each was reported */
};

/*
 * Plan to store the device images of SCAN that FILTER selects, and its files of databases
 * that are for the selected targets or for every GPU.  SCAN must outlive the plan.
 * INVALID_ARGUMENT: two files of databases have the same key.
 */
kpack_error_t plan_open(const struct scan *scan, struct arch_filter *filter,
			const struct plan_chunks *chunks, struct plan *out,
			struct kpackx_error *why);
void plan_close(struct plan *plan);

/* Remove the objects whose flag in DROP is set, of databases, with their keys. */
void plan_drop(struct plan *plan, const bool *drop);

/* The binary whose key is KEY (without "#n"); NULL: there is none. */
struct plan_binary *plan_find(const struct plan *plan, const char *key);

/* Find the scan's entry of the binary that KEY, with its "#n", is of; false: none. */
bool plan_find_owner(const struct plan *plan, struct kp_span key, size_t *entry);

/*
 * The binary of which an entry KEY (with its "#n") will be stored for ARCH; NULL: there is none.
 * Sets its *PLACE (see archive_set.h).  A "@kind" in KEY is ignored: whether an object gets one
 * is known only when it is compared with the others.
 */
struct plan_binary *plan_stores(const struct plan *plan, struct kp_span key,
				struct kp_span arch, const char **place);

#endif
