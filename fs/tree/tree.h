/* SPDX-License-Identifier: MIT */
/*
 * Inodes: a number for each directory and file of core's view, and their attributes.
 *
 * The number is the view's 64-bit id, the same after a remount and whatever directory is
 * the root. Where that id is taken or reserved the next free one is used; the view's
 * order fixes which node comes first. Immutable after tree_new: every call may run
 * concurrently.
 */
#ifndef FS_TREE_TREE_H
#define FS_TREE_TREE_H

#include <sys/stat.h>
#include "core/view/view.h"

#define TREE_ROOT 1
/* Numbers below, except the root's, are never a tree's: 0 is none, others are control
 * files. */
#define TREE_FIRST (UINT64_C(1) << 32)

struct tree;

/* A directory or a file of the view. */
struct tree_node {
	uint64_t ino;
	bool is_dir;
	uint32_t index; /* directory or file number of the view */
};

struct tree_options {
	uint32_t root;    /* the view's directory that is the tree's root */
	bool part;        /* not all names of the view are below it */
	uid_t uid;        /* -1: as the archive */
	gid_t gid;        /* -1: as the archive */
	mode_t mask;      /* bits to take away from modes */
	struct stat look; /* owner, read bits and times of directories */
};

/*
 * Which numbers stand for something else than NODE of VIEW, because the kernel may still
 * know them from before.
 */
struct tree_taken {
	bool (*is)(void *user, uint64_t ino, const struct kp_view *view,
		   struct tree_node node);
	void *user;
};

/* VIEW is borrowed.  TAKEN may be NULL.  OUT_OF_MEMORY is the only error. */
kpack_error_t tree_new(const struct kp_view *view, const struct tree_options *options,
		       const struct tree_taken *taken, struct tree **out,
		       struct kpackx_error *why);
void tree_free(struct tree *t); /* NULL is fine */

/* The node of an inode number; false when there is none. */
bool tree_find(const struct tree *t, uint64_t ino, struct tree_node *out);

struct tree_node tree_root(const struct tree *t);

/* Nodes have positions: directories, then files. */
uint32_t tree_size(const struct tree *t);
struct tree_node tree_at(const struct tree *t, uint32_t position);
uint32_t tree_position(const struct tree *t, struct tree_node node);

/* The directory above DIR; the root's is the root. */
struct tree_node tree_parent(const struct tree *t, uint32_t dir);

/* What is below the root, itself included. */
uint32_t tree_dir_count(const struct tree *t);
uint32_t tree_file_count(const struct tree *t);

/* The node a name of the view stands for. */
struct tree_node tree_named(const struct tree *t, const struct kp_view_name *name);

/* The node called TEXT in DIR; false when there is none. */
bool tree_lookup(const struct tree *t, uint32_t dir, struct kp_span text,
		 struct tree_node *out);

void tree_stat(const struct tree *t, struct tree_node node, struct stat *out);

#endif
