/* SPDX-License-Identifier: MIT */
/*
 * The generic tree of a split: "<component>_generic", with the trees "<component>_gfx..."
 * beside it, with an artifact's manifest in it, or with converted binaries.  Packages of
 * any GPU are installed over it, so a fat binary in it was left by mistake: its code is in
 * the package that is for no GPU, and nowhere else.  A tree that was never packed, or that
 * has another name, may have fat binaries.
 */
#ifndef PACKER_SPLIT_GENERIC_TREE_H
#define PACKER_SPLIT_GENERIC_TREE_H

#include "packer/archives/binary.h"
#include "packer/files/tree_list.h"

/* FILE is a fat binary in a generic tree. */
typedef void generic_tree_fn(void *arg, const char *file, const char *text);

/* The generic tree that a list of files is in; zeroed: none. */
struct generic_tree {
	generic_tree_fn *fault;
	void *arg;
	char *path;
	bool certain;   /* its name is not the only evidence */
	bool converted; /* a converted binary was seen */
	char **fat;     /* fat binaries, until the end of the tree */
	size_t n_fat, fat_cap;
};

/*
 * Take the next item of a list: a generic tree begins or ends; where one ends, FAULT gets
 * its fat binaries.  Only the root of the list and the directories in it are looked at.
 */
void generic_tree_item(struct generic_tree *g, const struct tree_item *item);

/* Take a binary of the list, whatever kind it is. */
void generic_tree_binary(struct generic_tree *g, const struct binary *b);

/*
 * Whether the list is in a generic tree for certain: the archives of its converted
 * binaries are in other trees.
 */
bool generic_tree_inside(const struct generic_tree *g);

void generic_tree_fini(struct generic_tree *g);

/*
 * Look for generic trees at ROOT, a tree or a directory of trees, and for fat binaries in
 * them.  Faults of single files are not reported.
 */
void generic_tree_check(const char *root, generic_tree_fn *fault, void *arg);

#endif
