/* SPDX-License-Identifier: MIT */
/* The directory of the tree that is the mount's root. */
#ifndef FS_TREE_SUBDIR_H
#define FS_TREE_SUBDIR_H

#include "edition.h"

/*
 * Make TEXT, which may be changed, a path inside the tree: slashes around it, repeated ones
 * and "." go away.  NULL: it is good; else what is wrong with it.
 */
const char *subdir_clean(char *text);

/*
 * Find PATH, which is clean, in E's view.  An empty one is the root, without toc.  A .kpackfs
 * of an archive there is hidden, with a warning: the mount has its own.  When PATH is only
 * there with all architectures shown, or not at all though it need not be, the view becomes
 * an empty one and ROOT an empty directory of it, with a warning.  false: no archive has such
 * a directory though it MUST_BE there, or no memory; logged.
 */
bool subdir_find(struct edition *e, const char *path, bool must_be, uint32_t *root);

#endif
