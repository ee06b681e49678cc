/* SPDX-License-Identifier: MIT */
/* Look at all files of a tree, and find those that changed since the last run. */
#ifndef PACKER_POLICY_LOOK_H
#define PACKER_POLICY_LOOK_H

#include "mounts.h"
#include "state.h"

struct look {
	struct kp_hash *hashes; /* of the regular files, sorted */
	size_t n_hashes, hashes_cap;
	size_t n_files; /* regular files */
	size_t n_new;   /* of these, files that the state has not seen */
	/* Hashes of files that may still change without getting another hash, sorted. */
	struct kp_hash *unsure;
	size_t n_unsure, unsure_cap;
	bool failed; /* a part could not be listed, as was reported */
};

/*
 * Look at TREE, without what is mounted in it at MOUNTS.  The caller finishes OUT in any
 * case.
 */
void look_at(const char *tree, const struct state *state,
	     const struct mount_table *mounts, struct look *out);
void look_fini(struct look *look);

/* The files of BEFORE that are sure, and the same in AFTER: *N hashes on the heap. */
struct kp_hash *look_same(const struct look *before, const struct look *after, size_t *n);

#endif
