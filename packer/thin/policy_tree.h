/* SPDX-License-Identifier: MIT */
/* A tree with a policy: how far it is. */
#ifndef PACKER_POLICY_TREE_H
#define PACKER_POLICY_TREE_H

#include "policy_mounts.h"
#include "packer/archives/arch_filter.h"
#include "packer/files/identity.h"
#include "owners.h"
#include "policy.h"
#include "policy_state.h"

/* Where things are; NULL: the defaults. */
struct policy_places {
	const char *policies, *states, *topology;
};

/* The regular files of a tree, each as a hash by which it is recognised unchanged. */
struct look {
	struct seen_file {
		struct kp_hash hash;
		bool sure; /* it cannot have changed since without getting another hash */
	} * items;         /* sorted */
	size_t count, cap;
	size_t n_new; /* of these, files that the state has not seen */
};

struct policy_tree {
	const struct policy *policy;
	char *state_path;
	struct state state;
	char *arch; /* the GPUs */
	char *gone; /* the GPUs of these that an earlier run found, and this one not */
	struct arch_filter filter; /* of the GPUs */
	struct mount_table mounts;
	struct look look;
	struct kp_hash *told; /* files that the run has reported and left as they are */
	size_t n_told, told_cap;
	bool missing;     /* the tree does not exist: its packages are not installed */
	bool interrupted; /* a run was killed while it changed files */
	bool damaged;     /* a run left a file alone because it is damaged */
	bool lost;       /* another program removed or replaced a file that was changed */
	uint64_t pruned; /* bytes of archives that a dry run would free */
	bool anew; /* all files have to be looked at: the policy or the GPUs changed */
};

/*
 * Read the state of P's tree, and find the GPUs.  false: it failed, which was reported.  The
 * caller finishes T in any case.
 */
bool policy_tree_open(struct policy_tree *t, const struct policy *p,
		      const struct policy_places *places);
void policy_tree_fini(struct policy_tree *t);

/* Find the mounts, and look at the files, or do so again.  false: as above. */
bool policy_tree_look(struct policy_tree *t);
/* The hash of a file by its path below the tree. */
struct kp_hash policy_tree_hash(const char *path, const struct file_identity *id);
/* Whether files have to be looked at, or changed. */
bool policy_tree_needs_work(const struct policy_tree *t);
/*
 * How the tree's archives are to be mounted: as the policy says, or while a thin tree is
 * still packed, as before.
 */
enum policy_mount policy_tree_mount(const struct policy_tree *t);
/* Whether everything is mounted that was mounted before, in that way. */
bool policy_tree_is_mounted(const struct policy_tree *t);
/* Whether the tree has archives that a policy made, and still needs them. */
bool policy_tree_is_packed(const struct policy_tree *t);
/* The bytes of the tree's archives; *N of them. */
uint64_t policy_tree_archives(const struct policy_tree *t, size_t *n);
/* The path of RELATIVE, which is below the tree, or of its first N bytes; on the heap. */
char *policy_tree_path(const struct policy_tree *t, const char *relative, size_t n);

/* Whether a file of the tree is one of those that are asked for. */
typedef bool policy_file_test(const struct policy_tree *t, const struct state_file *f);
bool policy_file_any(const struct policy_tree *t, const struct state_file *f);
bool policy_file_packed(const struct policy_tree *t, const struct state_file *f);
/* It lost code of a GPU that is wanted now. */
bool policy_file_lacks(const struct policy_tree *t, const struct state_file *f);
/* Whether the GPU number GPU loads code for a target of LIST. */
bool policy_tree_loads(const struct policy_tree *t, size_t gpu, const char *list);
/* Find the packages of such files; returns their number.  The caller finishes OUT. */
size_t policy_tree_packages(const struct policy_tree *t, policy_file_test *test,
			    struct owners *out);
/* The GPUs whose code was removed before they were wanted, on the heap; NULL: none. */
char *policy_tree_lacking(const struct policy_tree *t);

struct policy_sums {
	size_t changed, removed, packed; /* files */
	size_t fresh[STATE_KINDS];       /* files that this run changed */
	uint64_t saved;                  /* bytes */
};
struct policy_sums policy_tree_sums(const struct policy_tree *t);

#endif
