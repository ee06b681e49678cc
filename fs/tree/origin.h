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
#include "core/view/view.h"

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

/* NULL is fine. */
struct origin *origin_ref(struct origin *o);
void origin_unref(struct origin *o);

/*
 * True if the file is unchanged.  Call it before and after reading the file: the bytes
 * are good if both calls return true.  False with `changed`, it stays false: the file was
 * written to, and the TOC in memory no longer fits it.  False without: it cannot be looked at
 * now.  Renaming or unlinking is no change.
 */
bool origin_intact(struct origin *o);

/* An entry of an archive, to be read. */
struct origin_entry {
	struct origin *origin;
	size_t entry;
};

/*
 * A bundle: a file that is put together from entries of archives when it is read.  What it
 * has of its own is the header; between the parts are zeros.
 *
 * It holds references to the archives, so that it can be read after its edition has gone.
 * Immutable when all parts have been added; releasing the last reference frees it.
 */
struct bundle_part {
	struct origin_entry what; /* the whole of it; with a reference */
	uint64_t offset, size;
};

struct bundle {
	atomic_uint refs;
	uint64_t size;
	struct kp_span header;
	uint32_t count;
	struct bundle_part parts[]; /* by offset */
};

/* A bundle with the header and size of FROM, and room for its parts.  NULL: no memory. */
struct bundle *bundle_new(const struct kp_view_bundle *from);
/* Add a part behind those that were added; takes a reference of its own. */
void bundle_add(struct bundle *b, struct origin_entry what, uint64_t offset);

/* The content of a file of the mount: an entry; or BUNDLE, if that is not NULL. */
struct file_content {
	struct origin_entry entry;
	struct bundle *bundle;
};

void file_content_ref(const struct file_content *c);
void file_content_unref(const struct file_content *c); /* of zeros is fine */

/*
 * Whether C and FILE of VIEW have the same bytes, as far as their archives say; if SHARED,
 * and the same readers.
 */
bool file_content_same(const struct file_content *c, const struct kp_view *view,
		       uint32_t file, bool shared);

#endif
