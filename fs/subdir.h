/* SPDX-License-Identifier: MIT */
/* The directory of the tree that is the mount's root. */
#ifndef FS_SUBDIR_H
#define FS_SUBDIR_H

#include "sources.h"
#include "view.h"

/*
 * Make TEXT, which may be changed, a path inside the tree: slashes around it, repeated ones
 * and "." go away.  NULL: it is good; else what is wrong with it.
 */
const char *subdir_clean(char *text);

/*
 * Find PATH, which is clean, in *VIEW, which shows some of SOURCES.  An empty one is the
 * root, without toc.  A .kpackfs of an archive there is hidden, with a warning: the mount has
 * its own.  When PATH is only there with all architectures shown, *VIEW becomes an empty
 * one and ROOT an empty directory of it, with a warning.  false: no archive has such a
 * directory, or no memory; logged.
 */
bool subdir_find(const struct sources *sources, const char *path, struct kp_view **view,
		 uint32_t *root);

#endif
