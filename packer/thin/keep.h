/* SPDX-License-Identifier: MIT */
/*
 * The originals of files, in archives of a directory: for each file a recipe (core/restore/recipe.h),
 * the entry PATH of type "recipe", and the bytes that the changed file does not have, in
 * the entries PATH#0, PATH#1 ... of type "bin", all for the architecture "generic".
 */
#ifndef PACKER_THIN_KEEP_H
#define PACKER_THIN_KEEP_H

#include "core/archive/archive.h"
#include "core/base/file.h"
#include "core/restore/recipe.h"
#include "packer/archives/operands.h"
#include "packer/files/identity.h"
#include "packer/pack/tree.h"

/*
 * Take the directory DIR, which exists, for what TREE loses, as its file "tree" states.
 * INVALID_ARGUMENT: it keeps what another tree lost.
 */
kpack_error_t keep_claim(const char *dir, const char *tree, struct kpackx_error *why);

/*
 * Keep in the directory DIR what the original of the file PATH, of a tree, has and CHANGED
 * has not.  If DIR has an earlier original, of which FILE is a change, that one is kept.
 * Whole and flushed; thread-safe for files of other paths.
 * INVALID_ARGUMENT: PATH cannot be a key.  Errors of reading and writing.
 */
kpack_error_t keep_changed(const char *dir, const char *path,
			   const struct kp_source *file, const struct kp_source *changed,
			   struct kpackx_error *why);

/* A file to be removed. */
struct keep_file {
	const char *path; /* in the tree */
	const char *disk; /* to open it */
	const struct file_identity *id;
};

/* Keep the N FILES, as keep_changed does. */
kpack_error_t keep_removed(const char *dir, const struct keep_file *files, size_t n,
			   struct kpackx_error *why);

/* --- kpack thin --undo: put the originals back ------------------------------------------ */

struct undo_args {
	const char *dir; /* with the kept bytes */
	const char *tree;
	struct library_set libraries;
	unsigned jobs;
	bool progress;
};

enum undo_state {
	UNDO_RESTORED, /* or, before that, to be restored */
	UNDO_ORIGINAL, /* it was the original already */
	UNDO_LINK,     /* another path of a file that is restored */
	UNDO_REFUSED,  /* left as it is, which was reported */
};

struct undo_file {
	const struct kpack_archive *archive;
	struct kp_span path; /* in the tree; borrowed from the archive */
	struct kp_recipe recipe;
	uint64_t age; /* less: kept later */
	size_t entry; /* of the scan: the first path of the file; SIZE_MAX: none */
	enum undo_state state;
};

struct undo {
	struct undo_args args;
	struct archives kept;
	struct undo_file *files; /* by path, bytewise, then by age */
	size_t n_files, files_cap;
	struct scan scan;
	struct dispositions dispositions;
	struct input **restored; /* the files that get all of their code again */
	size_t n_restored;
	size_t n_faults;
	bool done; /* the tree was written */
};

/*
 * Carry out the ARGS of U, whose other members are zeroed.  Returns an exit status, after
 * reporting faults; EXIT_FAULT also: a file was refused.
 */
int undo_run(struct undo *u);
void undo_close(struct undo *u); /* finishes `args`, too; accepts a zeroed U */

#endif
