/* SPDX-License-Identifier: MIT */
/*
 * kpack pack --undo: a packed tree becomes what it was.
 *
 * Converted binaries have recipes, and the attributes of their originals.  Of the files of databases
 * archives have the bytes; before they leave a tree, originals_keep makes an empty file for each, at
 * the same path in KP_UNDO_DIR, which has its attributes and hard links, as the directories there have
 * those of the tree's.
 */
#ifndef PACKER_PACK_UNDO_H
#define PACKER_PACK_UNDO_H

#include "packer/archives/restore.h"
#include "run.h"

/*
 * Keep what undoing P needs, which is going to change its tree and has published its archives: the
 * attributes of what changes, and the first time the names of the archives that are of no run of ours.
 * Flushed.
 */
kpack_error_t originals_keep(const struct packing *p, struct kpackx_error *why);
/* Remove what was kept for TREE, if its archives are gone.  Errors of kp_archives_find. */
kpack_error_t originals_forget(const char *tree, struct kpackx_error *why);

/* What the run has done with a file. */
struct undone {
	char *path; /* below the tree */
	bool binary;
	const char *status;  /* "restored", "refused" */
	struct restored how; /* of a binary that was restored */
};

/* Code for a GPU that is neither in the tree nor in its archives. */
struct gone_code {
	char *arch;
	size_t n_binaries, n_files;
};

/* A directory that gets its time back. */
struct kept_time {
	char *path;
	struct timespec mtime;
};

struct kept_times {
	struct kept_time *items;
	size_t n, cap;
};

struct unpacking {
	const char *tree, *archive_dir;
	unsigned jobs;
	bool allow_missing; /* objects that were packed, but are in no archive now, are left out */
	bool drop_signature; /* of binaries that were changed and signed since */
	bool progress;       /* show it */

	char *archives, *kept; /* directories */
	int lock;
	struct shown_files shown;
	bool *foreign;           /* per archive: it was there before */
	struct installed set;    /* the archives that binaries reach */
	pthread_mutex_t opening; /* guards the set and `left` */
	struct scan scan;
	struct dispositions dispositions;
	struct restored *restored; /* per entry of the scan */
	uint64_t *costs;           /* the same: memory that it needs */
	uint64_t bytes;            /* of the objects of all */
	struct kept_times dirs;    /* of the tree */
	size_t n_faults;

	/* for the report */
	bool done; /* the tree was written */
	bool left; /* what is packed stays so in part, and the archives with it */
	struct undone *files;
	size_t n_files, files_cap;
	struct gone_code *gone; /* by architecture */
	size_t n_gone, gone_cap;
	char **lacking; /* paths of files that lost code, below the tree */
	size_t n_lacking, lacking_cap;
};

/*
 * Restore, then remove the archives.  The members before `archives` are set, the others zeros.  Whatever
 * kills it, running it again does the rest: nothing leaves the archives before all is flushed.  Returns
 * an exit status, after reporting faults; EXIT_FAULT also: something is left.
 */
int unpacking_run(struct unpacking *u);
void unpacking_close(struct unpacking *u); /* accepts zeros */

#endif
