/* SPDX-License-Identifier: MIT */
/* Option subdir=: the directory of the tree that is the mount's root. */
#ifndef FS_TREE_SUBDIR_H
#define FS_TREE_SUBDIR_H

#include "edition.h"

/*
 * Clean TEXT in place: remove leading, trailing and repeated slashes, and "." components.
 * Returns NULL if it is a path inside the tree, else what is wrong with it.
 */
const char *subdir_clean(char *text);

/*
 * Find the directory PATH, which is clean, in E's view.  An empty PATH is the root
 * without toc.  A .kpackfs that an archive has in PATH is hidden, with a warning: the
 * mount has its own.  If PATH does not exist, or only for architectures that are not
 * shown, the view is replaced by an empty one and ROOT is an empty directory in it, with
 * a warning.  false: MUST_BE and PATH does not exist for any architecture, or no memory;
 * logged.
 */
bool subdir_find(struct edition *e, const char *path, bool must_be, uint32_t *root);

#endif
