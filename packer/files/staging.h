/* SPDX-License-Identifier: MIT */
/*
 * What runs make in directories that they share with other runs and users: locks, temporary
 * directories, what killed runs left, and trees that appear together.
 */
#ifndef PACKER_FILES_STAGING_H
#define PACKER_FILES_STAGING_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/errors.h"

/* --- locks ----------------------------------------------------------------------------- */

/*
 * Runs lock directories with flock, so that they write into them one after the other.
 * Everybody who can open a directory can lock it: a run waits, and says for what.
 */

/*
 * Lock the directory or file PATH, which is open at FD, until lock_close or the end of the
 * process; wait for whoever has it locked, after a note.  False: the file system has no locks.
 */
bool lock_wait(int fd, const char *path);

/* Unlock and close FD; -1 is allowed. */
void lock_close(int fd);

/*
 * Wait until no other run writes the tree ROOT, a directory, and lock it.  The caller
 * unlocks it by lock_close(LOCK); -1: the file system has no locks.  The errors of
 * lock_wait, and of opening ROOT.
 */
kpack_error_t leftovers_lock(const char *root, int *lock, struct kpackx_error *why);

/* Remove leftovers in the directory PATH of ROOT ("": ROOT itself), which is locked. */
kpack_error_t leftovers_remove(const char *root, const char *path,
			       struct kpackx_error *why);

/*
 * Remove a tree, also from read-only directories.  Files that cannot be removed stay: then it returns the
 * first errno, else 0.
 */
int remove_tree(const char *path);

/* --- temporary directories -------------------------------------------------------------- */

/*
 * A directory for the files of one run, in a directory that other users may write into:
 * only its user may enter it, and its lock shows that the run is alive.
 */
struct temp_dir {
	char *path; /* a root of below.h */
	int fd;     /* the directory, locked; -1: none */
};

/* Make one in the directory BASE; its name begins with PREFIX.  IO_ERROR. */
kpack_error_t temp_dir_open(struct temp_dir *t, const char *base, const char *prefix,
			    struct kpackx_error *why);
/* Remove it and what is in it.  Accepts one with fd -1 and path NULL. */
void temp_dir_close(struct temp_dir *t);

/*
 * Remove those that killed runs of the same user left in BASE, but none that a running one
 * uses.  RECOVER, if not NULL, is called before with the descriptors of the directory and
 * of BASE.  What cannot be removed stays, and is not reported.  Where other users can
 * rename directories, root removes only what it made with this module.
 */
void temp_dir_remove_left(const char *base, const char *prefix,
			  void (*recover)(int dir, int base));

/* --- trees that appear together ---------------------------------------------------------- */

/*
 * Trees are made in a staging directory inside their final directory, and get their names when
 * all are complete.  The same user's next run in that directory removes what a killed run left,
 * but not what a running one uses.
 */
struct staging {
	const char *dir; /* the trees' final directory; borrowed */
	char *path;      /* path of the staging directory */
	int fd;          /* the staging directory, locked while the run lasts; -1: none */
};

/*
 * Make DIR, if it is missing, and a staging directory in it.  Leftovers of killed runs
 * that cannot be removed stay, and are not reported.
 */
kpack_error_t staging_open(struct staging *s, const char *dir, struct kpackx_error *why);
/* Remove all trees that have not got their names.  Accepts zeros with fd -1. */
void staging_close(struct staging *s);

/* Check that NAME is free or can be REPLACEd.  INVALID_ARGUMENT: it exists and cannot. */
kpack_error_t staging_check(const struct staging *s, const char *name, bool replace,
			    struct kpackx_error *why);

/*
 * Flush all, then give the N trees NAMES their names in this order, REPLACEing trees that
 * have these names.  On failure the trees that got names lose them again, and the trees
 * that they replaced are restored.  If the run is killed, the first trees may have names;
 * the next staging_open in that directory then undoes this in the same way.
 */
kpack_error_t staging_publish(struct staging *s, const char *const *names, size_t n,
			      bool replace, struct kpackx_error *why);

/* --- the journal, for tests --------------------------------------------------------------- */

/*
 * It lists the trees that are about to get their names, in the directory that holds them.  A
 * later run that finds only some of these names sees that the other trees are missing.
 */
/* Its file name: no tree has it. */
#define JOURNAL_NAME ".kpack-staging-names"

/* Tells a directory from others; the numbers alone of removed directories are used again. */
struct tree_identity {
	uint64_t ino;
	int64_t born;
	uint64_t born_ns;
};

struct journal_name {
	char *name;
	struct tree_identity tree; /* that is to get the name */
};

struct journal {
	struct journal_name *items;
	size_t count;
};

/* Read DIR's journal.  false: none, or it is incomplete: then no tree got its name. */
bool journal_read(struct journal *out, int dir);
void journal_fini(struct journal *journal);

/* Whether the tree has got its name in the directory TO. */
bool journal_given(const struct journal_name *name, int to);

#endif
