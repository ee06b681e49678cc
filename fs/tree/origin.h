/* SPDX-License-Identifier: MIT */
/*
 * An archive that is served, and whether its file is still what it was when it was opened.
 *
 * Shared by editions, by inodes that outlive theirs and by reads that run; the last one closes
 * the archive.  Thread-safe.
 */
#ifndef FS_TREE_ORIGIN_H
#define FS_TREE_ORIGIN_H

#include <stdatomic.h>
#include "core/archive/archive.h"

struct origin {
	struct kpack_archive *archive;
	uint32_t serial; /* this daemon gives none twice */
	atomic_uint refs;
	atomic_bool changed; /* see origin_intact */
	/* Time of its last change, in ns, for which the table of contents was compared. */
	_Atomic int64_t verified;
	size_t retired;   /* inodes' */
	atomic_bool idle; /* no edition and no inode has it: keep nothing open for it */
};

/*
 * Open the archive in FD, which is closed in any case, later or now; PATH is its name in
 * messages.  *OUT has one reference.  As kp_archive_open_fd.
 */
kpack_error_t origin_new(int fd, const char *path, struct origin **out,
			 struct kpackx_error *why);

struct origin *origin_ref(struct origin *o);
void origin_unref(struct origin *o); /* NULL is fine */

/*
 * Is the file unchanged?  To be asked before and after reading it: what was read between
 * two answers yes is good.  Once no, always no: the file was written to, and its table of
 * contents is of no use any more.  Renaming and unlinking it change nothing.
 */
bool origin_intact(struct origin *o);

/* An entry of an archive: what is read. */
struct origin_entry {
	struct origin *origin;
	size_t entry;
};

#endif
