/* SPDX-License-Identifier: MIT */
/*
 * Policies: command lines of kpack thin and kpack pack that kpack apply runs again whenever their
 * tree has changed; and what is remembered of each tree between two runs.
 */
#ifndef PACKER_THIN_POLICY_H
#define PACKER_THIN_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/errors.h"
#include "core/base/span.h"
#include "packer/archives/arch_filter.h"
#include "packer/files/identity.h"

#define POLICY_DIR "/etc/kpack/policy.d"
#define STATE_DIR "/var/lib/kpack"

/* A hash of a text, as hexadecimal digits; "-" stands for none. */
typedef char policy_hash[33];

/* --- policies: policy.c -------------------------------------------------------------- */

struct policy_command {
	char **words; /* "thin", "--arch", "auto", "/opt/rocm"; the last one is the tree */
	size_t n_words, words_cap;
	size_t arch; /* the word that is the list of GPUs */
	bool packs;
};

/* A file NAME.conf.  All of its commands have the same tree and list of GPUs. */
struct policy {
	char *name;
	char *tree; /* absolute, without links and without a slash at its end, but for "/" */
	char *arch; /* the list as it was written, perhaps with "auto" */
	struct policy_command *commands;
	size_t n_commands, commands_cap;
	policy_hash hash; /* of the file's text */
	bool overlaps;    /* with another policy's tree */
	bool wrong;       /* it was reported, and only the name is known */
};

struct policies {
	struct policy *items; /* by name, bytewise */
	size_t count, cap;
};

/*
 * Parse the text of a policy into OUT, whose name stays.  INVALID_FORMAT: WHY names the line.
 * The caller finishes OUT in any case.
 */
kpack_error_t policy_parse(struct kp_span text, struct policy *out,
			   struct kpackx_error *why);
void policy_fini(struct policy *p);

/*
 * Read the policies of the directory DIR; with N NAMES only these.  false: a policy is
 * wrong or missing, which was reported.  Root takes policies only from a directory and from
 * files that nobody else may write.  No DIR: no policies.
 */
bool policies_read(const char *dir, char *const *names, size_t n, struct policies *out);
void policies_fini(struct policies *list);

/*
 * Read a file that, when root runs the program, only root may write; the caller frees its bytes.
 * It may be a link of root's, to where nobody else can put another file.
 */
kpack_error_t policy_file_load(const char *path, uint64_t most, uint8_t **out,
			       size_t *size, struct kpackx_error *why);

void policy_hash_of(const char *text, size_t size, policy_hash out);

/* --- trees and their states: policy_tree.c ------------------------------------------- */

enum state_kind {
	STATE_SEEN,    /* a file as others left it */
	STATE_CHANGED, /* a command of the policy made it smaller */
	STATE_REMOVED, /* kpack thin removed it */
	STATE_PACKED,  /* kpack pack moved it into archives */
	STATE_KINDS,
};

struct state_file {
	char *path; /* below the tree */
	enum state_kind kind;
	uint64_t size, mtime, ino; /* by which the file is known; zeros: it is gone */
	uint64_t before;           /* unless it was only seen: its size before that */
	uint64_t gpus;             /* and the number of the list it was done for */
	bool fresh; /* it came, or was changed, since the last run; not stored */
};

struct state {
	char *tree;
	policy_hash policy; /* the policy whose commands were all run */
	int64_t when;      /* the last run ended; seconds since 1970; 0: there was none */
	bool packed;       /* archives in the tree have code that a policy packed */
	bool forgotten;    /* an earlier state was lost */
	uint64_t n_mounts; /* that the tree should have */
	char **gpus;       /* lists of GPUs; the last one is of the last run */
	size_t n_gpus, gpus_cap;
	struct state_file *files; /* by path, bytewise */
	size_t n_files, files_cap;
};

/* Parse the bytes of a state, which OUT, zeroed, gets; the caller finishes it in any case. */
kpack_error_t state_parse(struct kp_span data, struct state *out,
			  struct kpackx_error *why);
/* The bytes of a state, on the heap. */
char *state_format(const struct state *s, size_t *size);
/* FILE_NOT_FOUND: there is none. */
kpack_error_t state_read(const char *path, struct state *out, struct kpackx_error *why);
void state_fini(struct state *s);

/* Whether the file PATH, with the identity ID, is as the last run left it. */
bool state_knows(const struct state *s, const char *path, const struct file_identity *id);

/* Where things are. */
struct policy_places {
	const char *policies, *states;
	const char *topology; /* NULL: the system's */
};

struct policy_tree {
	const struct policy *policy;
	char *state_path;
	struct state state;
	bool missing; /* the tree does not exist: its packages are not installed */
	char *arch;   /* the GPUs, separated by commas */
	char *gone; /* those of them that an earlier run found, and this one not; or NULL */
	bool anew; /* the policy or the GPUs changed: all files are to be looked at */
	size_t n_new,
		n_gone; /* files that came or changed, and that went, since the last run */
	size_t n_pruned;       /* objects that this run removed from the archives, and */
	uint64_t pruned_bytes; /* what that freed */
	char **mounts;         /* where kpackfs is mounted in the tree */
	size_t n_mounts, mounts_cap;
};

/*
 * Read the state of P's tree, and find the GPUs.  false: it failed, which was reported.  The
 * caller finishes T in any case.
 */
bool policy_tree_open(struct policy_tree *t, const struct policy *p,
		      const struct policy_places *places);
/* Write the state down.  false: as above. */
bool policy_tree_save(const struct policy_tree *t);
void policy_tree_fini(struct policy_tree *t);

/*
 * Look at files and mounts.  What changed since the last look is the work of others
 * (STATE_SEEN), of kpack thin (STATE_REMOVED), or of kpack pack (STATE_PACKED).  false: as above.
 */
bool policy_tree_look(struct policy_tree *t, enum state_kind work);
/* Only the mounts. */
bool policy_tree_find_mounts(struct policy_tree *t);

/* Whether commands have to be run. */
bool policy_tree_needs_work(const struct policy_tree *t);
/* The path of RELATIVE, which is below the tree; on the heap. */
char *policy_tree_path(const struct policy_tree *t, const char *relative);
/* The bytes of the tree's archives; *N of them. */
uint64_t policy_tree_archives(const struct policy_tree *t, size_t *n);

/* Whether F lost code, or a file, for a GPU that is wanted now. */
bool policy_tree_lacks(const struct policy_tree *t, const struct state_file *f);
/* Those GPUs, separated by commas, on the heap; NULL: none. */
char *policy_tree_lacking(const struct policy_tree *t);
/* After archives were pruned: none of them has code for GPUs that are not wanted any more. */
void policy_tree_forget_gpus(struct policy_tree *t);

struct policy_sums {
	size_t n[STATE_KINDS];     /* files */
	size_t fresh[STATE_KINDS]; /* and those that this run changed */
	uint64_t saved;            /* bytes */
};
struct policy_sums policy_tree_sums(const struct policy_tree *t);

/* --- which packages of dpkg and rpm have which files: packages.c ------------------------- */

/* The programs that are asked, if they exist; rpm only if it has a database. */
struct packages_programs {
	const char *dpkg_query, *rpm;
};

/*
 * The names of the packages that have the N PATHS below the absolute path ROOT, each once and after
 * a space, on the heap.  PROGRAMS (NULL: the system's) are asked once; one that fails is reported.
 */
char *packages_of(const struct packages_programs *programs, const char *root,
		  const char *const *paths, size_t n);

#endif
