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

#include "packer/archives/prune.h"
#include "packer/archives/restore.h"
#include "packer/files/spill_dir.h"
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
	const char *path;      /* below the tree */
	const char *status;    /* "restored", "refused" */
	bool binary, restored; /* not restored: it was left as it is */
	struct restored how;   /* of a binary that was restored */
};

/* Code for a GPU that is neither in the tree nor in its archives. */
struct gone_code {
	char *arch;
	size_t n_binaries, n_files;
};

/* A file that an archive shows at a path. */
struct shown_file {
	struct kp_span path;
	const struct kpack_archive *archive;
	size_t entry;
};

/* A directory that gets its time back. */
struct kept_time {
	char *path;
	struct timespec mtime;
};

struct unpacking {
	const char *tree, *archive_dir;
	unsigned jobs;
	bool allow_missing; /* objects that were packed, but are in no archive now, are left out */

	char *archives, *kept; /* directories */
	int lock;
	struct demand demand; /* what stays packed, and the open archives */
	struct reach reach;   /* the archives of the tree */
	struct shown_files {
		struct shown_file *items;
		size_t n, cap;
	} shown; /* what they show as files, by path */
	struct scan scan;
	struct dispositions dispositions;
	struct restored *restored; /* per entry of the scan */
	uint64_t *costs;           /* the same: memory that it needs */
	pthread_mutex_t opening;   /* guards the demand's archives */
	struct spill_dir spill;
	struct kept_time *dirs;
	size_t n_dirs, dirs_cap;
	size_t n_faults;

	/* for the report */
	bool done;                /* the tree was written */
	bool refused, unreadable; /* a binary was, or an archive is */
	struct undone *files;
	size_t n_files, files_cap;
	struct gone_code *gone; /* by architecture */
	size_t n_gone, gone_cap;
	char **lacking; /* paths of files that lost code, below the tree */
	size_t n_lacking, lacking_cap;
	char **left; /* archives that stay, below the tree */
	size_t n_left, left_cap;
};

/*
 * Restore, then remove the archives.  The members before `archives` are set, the others zeros.  Whatever
 * kills it, running it again does the rest: nothing leaves the archives before all is flushed.  Returns
 * an exit status, after reporting faults; EXIT_FAULT also: a file was refused.
 */
int unpacking_run(struct unpacking *u);
void unpacking_close(struct unpacking *u); /* accepts zeros */

#endif
