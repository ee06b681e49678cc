/* SPDX-License-Identifier: MIT */
/* kpack thin --undo: put the originals back that a run with --keep kept. */
#ifndef PACKER_THIN_UNDO_H
#define PACKER_THIN_UNDO_H

#include "keep.h"
#include "packer/archives/operands.h"
#include "packer/pack/tree.h"

struct undo_args {
	const char *dir; /* with the kept bytes */
	const char *tree;
	struct library_set libraries;
	unsigned jobs;
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
	size_t entry; /* of the scan: the first path of the file; SIZE_MAX: none */
	enum undo_state state;
};

struct undo {
	struct undo_args args;
	struct archives kept;
	struct undo_file *files; /* by path, bytewise */
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
