/* SPDX-License-Identifier: MIT */
/*
 * Inodes: a number for each directory and file of core's view, and their attributes.
 *
 * The number is the low bits of the view's ID, the same after a remount and whatever
 * directory is the root.  If it is taken or reserved, the node gets the next free one; the
 * view's order decides which node comes first.  Immutable after tree_new: all calls may run
 * concurrently.
 */
#ifndef FS_TREE_TREE_H
#define FS_TREE_TREE_H

#include <sys/stat.h>
#include "core/view/view.h"

#define TREE_ROOT 1
/*
 * The lowest number of a node other than the root.  The number 0 is no inode; the other
 * numbers below are reserved for control files.
 */
#define TREE_FIRST (UINT64_C(1) << 32)
/* The highest one: overlays put the number of a layer into the upper bits (xino=on). */
#define TREE_LAST (UINT64_MAX >> 8)

struct tree;

/* A directory or a file of the view. */
struct tree_node {
	uint64_t ino;
	bool is_dir;
	uint32_t index; /* number of the directory or file in the view */
};

struct tree_options {
	uint32_t root;    /* the view's directory that is the tree's root */
	bool part;        /* some names of the view are not below the root */
	uid_t uid;        /* -1: as the archive */
	gid_t gid;        /* -1: as the archive */
	mode_t mask;      /* bits to clear in modes */
	struct stat look; /* owner, read bits and times of directories */
};

/*
 * A callback: true if INO must not be given to NODE of VIEW, because the kernel may still
 * know INO as another node.
 */
struct tree_taken {
	bool (*is)(void *user, uint64_t ino, const struct kp_view *view,
		   struct tree_node node);
	void *user;
};

/*
 * VIEW is borrowed.  TAKEN may be NULL, and is used only in this call.  OUT_OF_MEMORY is
 * the only error.
 */
kpack_error_t tree_new(const struct kp_view *view, const struct tree_options *options,
		       const struct tree_taken *taken, struct tree **out,
		       struct kpackx_error *why);
void tree_free(struct tree *t); /* NULL is fine */

/* The node with the number INO; false: the tree has none. */
bool tree_find(const struct tree *t, uint64_t ino, struct tree_node *out);

/*
 * As tree_find, but tries the node at *POSITION first, which need not exist.  *POSITION
 * becomes the one after the node that was found: for nodes in the order of another tree.
 */
bool tree_find_near(const struct tree *t, uint64_t ino, uint32_t *position,
		    struct tree_node *out);

struct tree_node tree_root(const struct tree *t);

/* Nodes have positions from 0 to the tree's size: directories first, then files. */
uint32_t tree_size(const struct tree *t);
struct tree_node tree_at(const struct tree *t, uint32_t position);
uint32_t tree_position(const struct tree *t, struct tree_node node);

/* The directory above DIR; the root's parent is the root. */
struct tree_node tree_parent(const struct tree *t, uint32_t dir);

/* The number of directories and files below the root; the root counts, too. */
uint32_t tree_dir_count(const struct tree *t);
uint32_t tree_file_count(const struct tree *t);

/* The node of a name of the view. */
struct tree_node tree_named(const struct tree *t, const struct kp_view_name *name);

/* The node at TEXT in DIR; false: none. */
bool tree_lookup(const struct tree *t, uint32_t dir, struct kp_span text,
		 struct tree_node *out);

void tree_stat(const struct tree *t, struct tree_node node, struct stat *out);

static inline bool is_newer_time(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

#endif
