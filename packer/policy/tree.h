/* SPDX-License-Identifier: MIT */
/* A tree with a policy: how far it is. */
#ifndef PACKER_POLICY_TREE_H
#define PACKER_POLICY_TREE_H

#include "look.h"
#include "mounts.h"
#include "packer/thin/owners.h"
#include "policy.h"
#include "state.h"

/* Where things are; NULL: the defaults. */
struct policy_places {
	const char *policies, *states, *topology;
};

struct policy_tree {
	const struct policy *policy;
	char *state_path;
	struct state state;
	bool interrupted; /* a run was killed while it changed files */
	char *arch;       /* the GPUs */
	char *gone; /* the GPUs of these that an earlier run found, and this one not */
	struct mount_table mounts;
	struct look look;
	bool damaged; /* a run left a file alone because it is damaged */
	bool lost;    /* another program removed or replaced a file that was changed */
	bool anew;    /* all files have to be looked at: the policy or the GPUs changed */
};

/*
 * Read the state of P's tree, and find the GPUs and the mounts.  false: it failed, which was
 * reported.  The caller finishes T in any case.
 */
bool policy_tree_open(struct policy_tree *t, const struct policy *p,
		      const struct policy_places *places);
void policy_tree_fini(struct policy_tree *t);

/* Find the mounts, and look at the files, or do so again.  false: as above. */
bool policy_tree_look(struct policy_tree *t);
/* Whether files have to be looked at, or changed. */
bool policy_tree_needs_work(const struct policy_tree *t);
/* Whether everything is mounted that was mounted before, in the policy's way. */
bool policy_tree_is_mounted(const struct policy_tree *t);
/* Whether files of the tree are packed, as far as is known. */
bool policy_tree_is_packed(const struct policy_tree *t);

/* Which files policy_tree_packages is asked about. */
enum policy_files {
	POLICY_CHANGED, /* all that were changed or removed */
	POLICY_LACKING, /* those that lack code of a GPU that is wanted now */
};
size_t policy_tree_count(const struct policy_tree *t, enum policy_files which);
/* The packages of such files.  The caller finishes OUT. */
void policy_tree_packages(const struct policy_tree *t, enum policy_files which,
			  struct owners *out);
/* The GPUs whose code was removed before they were wanted, on the heap; NULL: none. */
char *policy_tree_lacking(const struct policy_tree *t);

struct policy_sums {
	size_t changed, removed, packed; /* files */
	uint64_t before, after;          /* their bytes */
	uint64_t archives;               /* bytes of the tree's archives */
};
struct policy_sums policy_tree_sums(const struct policy_tree *t);
uint64_t policy_sums_saved(const struct policy_sums *s);

#endif
