/* SPDX-License-Identifier: MIT */
/*
 * An archive that is served.  Detects that its file was changed after it was opened.
 *
 * Shared by editions, by inodes that outlive their edition and by running reads;
 * releasing the last reference closes the archive.  Thread-safe.
 */
#ifndef FS_TREE_ORIGIN_H
#define FS_TREE_ORIGIN_H

#include <stdatomic.h>
#include "core/archive/archive.h"

struct origin {
	struct kpack_archive *archive;
	uint32_t serial; /* unique during the life of the daemon */
	atomic_uint refs;
	atomic_bool changed; /* see origin_intact */
	/* The file's ctime, in ns, for which the TOC was last compared and found
	 * equal. */
	_Atomic int64_t verified;
	size_t retired;   /* retired inodes of the archive */
	atomic_bool idle; /* no edition and no inode has it: keep nothing open for it */
};

/*
 * Open the archive in FD with kp_archive_open_fd, and return its errors.  Takes over FD,
 * even on failure.  PATH is the archive's name in messages.  *OUT has one reference.
 */
kpack_error_t origin_new(int fd, const char *path, struct origin **out,
			 struct kpackx_error *why);

struct origin *origin_ref(struct origin *o);
void origin_unref(struct origin *o); /* NULL is fine */

/*
 * True if the file is unchanged.  Call it before and after reading the file: the bytes
 * are good if both calls return true.  Once false, it stays false: the file was written
 * to, and the TOC in memory no longer fits it.  Renaming or unlinking is no change.
 */
bool origin_intact(struct origin *o);

/* An entry of an archive, to be read. */
struct origin_entry {
	struct origin *origin;
	size_t entry;
};

#endif
