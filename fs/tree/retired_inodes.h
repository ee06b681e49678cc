/* SPDX-License-Identifier: MIT */
/*
 * A table, by number, of inodes that the kernel still holds though no name leads to them
 * any more.  Each keeps its archives open.  Not thread-safe.
 */
#ifndef FS_TREE_RETIRED_INODES_H
#define FS_TREE_RETIRED_INODES_H

#include "edition.h"

struct retired_inode {
	struct retired_inode *next; /* in its bucket */
	uint64_t id;                /* directories: the view's ID */
	uint64_t lookups;
	struct stat st;           /* the inode's number is st.st_ino */
	struct file_content file; /* files: with a reference */
};

struct retired_inodes {
	struct retired_inode **buckets;
	size_t size; /* a power of two, or 0 */
	size_t count;
	size_t archives; /* archives with retired inodes */
};

/* NULL: INO is not in the table. */
struct retired_inode *retired_inodes_find(const struct retired_inodes *r, uint64_t ino);

/*
 * Add a copy of INODE, with a reference of its own to the content.  Its number must not be
 * in the table.  false: no memory.
 */
bool retired_inodes_add(struct retired_inodes *r, const struct retired_inode *inode);

/*
 * Remove the inode INO, which must be in the table.  Archives of which it was the last
 * inode are added to LAST.
 */
void retired_inodes_remove(struct retired_inodes *r, uint64_t ino, struct holdings *last);

void retired_inodes_fini(struct retired_inodes *r);

#endif
