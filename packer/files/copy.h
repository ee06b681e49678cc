/* SPDX-License-Identifier: MIT */
/* Copies of attributes, of single files, and of trees. */
#ifndef PACKER_FILES_COPY_H
#define PACKER_FILES_COPY_H

#include <stdbool.h>
#include <sys/stat.h>
#include "core/base/errors.h"
#include "core/base/hash.h"
#include "identity.h"
#include "staging.h"

/* --- attributes: all of a file but its bytes ---------------------------------------- */

/*
 * Give the file open at TO the owner, permissions, ACL, capabilities, extended attributes
 * and times of the file open at FROM, whose stat is ST.  The caller must not write to TO
 * afterwards.  Signatures of the content (IMA, EVM) are left out: they would be wrong.
 *
 * If the process may not change the owner, TO keeps its own owner; then set-user-ID and
 * set-group-ID bits are not set, nor capabilities without the privilege for that.  A
 * caller that needs the owner must check it afterwards.
 * IO_ERROR: another attribute cannot be kept.
 */
kpack_error_t attributes_copy(int from, int to, const struct stat *st,
			      struct kpackx_error *why);

/*
 * Add those attributes of PATH to HASH that the machine does not choose itself: ACLs,
 * capabilities and user attributes, but not labels, signatures or owners.  A symbolic
 * link is not followed.
 * IO_ERROR.
 */
kpack_error_t attributes_hash(const char *path, struct kp_hasher *hash,
			      struct kpackx_error *why);

/* --- single files --------------------------------------------------------------------- */

/*
 * Copy the file SEEN at FROM, with its attributes: a regular file, whose holes stay holes, or a
 * symbolic link, FIFO, device or socket itself; SEEN is NULL for any regular file.  An existing
 * TO is replaced atomically; a directory TO is an error.  Nothing is flushed: a copy can be made
 * again.  IO_ERROR also: FROM is another file now, or was changed.  IO_ERROR with EPERM: the user
 * may not make such a file, or not there.
 */
kpack_error_t copy_seen(const char *from, const struct file_identity *seen,
			const char *to, struct kpackx_error *why);

/* --- trees ------------------------------------------------------------------------------ */

/*
 * A tree is written so: first directories, then files in them, then further hard links of these
 * files, and last the attributes of the directories.  Paths are relative to the tree; "" is its
 * root.  An existing directory is filled.  Errors name the file.
 */
struct tree_directory;

struct tree_write {
	const char *root; /* borrowed */
	/*
	 * The tree is new, has no name yet and is the program's own: errors name the files
	 * that are copied, and the caller may remove directories.
	 */
	bool staged;
	/*
	 * By leftovers_lock of the root, until W ends: tree_write_finish then removes what killed
	 * runs left in the directories.  -1: not locked.
	 */
	int lock;
	struct tree_directory *dirs; /* parents first; they get attributes at the end */
	size_t n_dirs, dirs_cap;
	void *links; /* tree of the files with several hard links, by inode */
};

/* Begin to write; ROOT is borrowed.  The caller must end W in any case. */
void tree_write_begin(struct tree_write *w, const char *root, bool staged);
void tree_write_end(struct tree_write *w);

/* Make the root with its parents, if it is missing, and make it writable. */
kpack_error_t tree_write_root(struct tree_write *w, struct kpackx_error *why);

/*
 * Make the directory PATH, unless it exists, and make it writable.  At the end it gets
 * the attributes of the directory FROM.
 */
kpack_error_t tree_write_directory(struct tree_write *w, const char *path,
				   const char *from, struct kpackx_error *why);
/*
 * Make the directories above PATH that are missing, as tree_write_directory does from the
 * directory with the same path in FROM; if there is none, with the usual permissions.
 */
kpack_error_t tree_write_parents(struct tree_write *w, const char *path, const char *from,
				 struct kpackx_error *why);

/*
 * Copy FROM, anything but a directory.  A device, FIFO or socket that the user may not
 * make, or not there, is left out: *LEFT gets the reason, on the heap; else NULL.  Without
 * LEFT that is an error.
 */
kpack_error_t tree_write_file(struct tree_write *w, const char *path, const char *from,
			      const struct file_identity *seen, char **left,
			      struct kpackx_error *why);
/*
 * Make PATH a hard link to FIRST, which was written of SEEN's file; where that is not
 * possible, copy FROM.  FROM is NULL if FIRST has other bytes than SEEN's file: then copy
 * FIRST.
 */
kpack_error_t tree_write_link(struct tree_write *w, const char *path, const char *first,
			      const char *from, const struct file_identity *seen,
			      struct kpackx_error *why);
/*
 * The path that was given here before for SEEN's file, whose links W writes; NULL: PATH is the first.
 */
const char *tree_write_first(struct tree_write *w, const char *path,
			     const struct file_identity *seen);
/*
 * As tree_write_directory or tree_write_file.  A file of which this call has written
 * another path becomes a link to it, or is left out with it.
 */
kpack_error_t tree_write_entry(struct tree_write *w, const char *path, const char *from,
			       const struct file_identity *seen, char **left,
			       struct kpackx_error *why);
/* Remove the file PATH, if an earlier run has written it. */
kpack_error_t tree_write_remove(struct tree_write *w, const char *path,
				struct kpackx_error *why);

/* Give the directories their attributes, from the innermost on. */
kpack_error_t tree_write_finish(struct tree_write *w, struct kpackx_error *why);

#endif
