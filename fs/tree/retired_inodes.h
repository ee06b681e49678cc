/* SPDX-License-Identifier: MIT */
/*
 * Inodes the kernel still holds though no name leads to them any more, by number.  Each
 * keeps its archive open.  Not thread-safe.
 */
#ifndef FS_TREE_RETIRED_INODES_H
#define FS_TREE_RETIRED_INODES_H

#include "origin.h"

struct retired_inode {
	struct retired_inode *next; /* in its bucket */
	uint64_t id;                /* of a directory: the view's */
	uint64_t lookups;
	struct stat st;           /* the number is st.st_ino */
	struct origin_entry file; /* of a file, with a reference */
};

struct retired_inodes {
	struct retired_inode **buckets;
	size_t size; /* a power of two, or 0 */
	size_t count;
	size_t archives; /* that they are of */
};

/* NULL: there is none. */
struct retired_inode *retired_inodes_find(const struct retired_inodes *r, uint64_t ino);

/* A copy of INODE, with a reference to its origin; no such number is there.  false: no memory. */
bool retired_inodes_add(struct retired_inodes *r, const struct retired_inode *inode);

/*
 * Take an inode out.  Returns its origin when it was the last one of it, with a reference, else
 * NULL.
 */
struct origin *retired_inodes_remove(struct retired_inodes *r, uint64_t ino);

void retired_inodes_fini(struct retired_inodes *r);

#endif
