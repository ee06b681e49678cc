/* SPDX-License-Identifier: MIT */
/* The files a mount shows, one after another. */
#ifndef FS_TREE_WALK_H
#define FS_TREE_WALK_H

#include "tree.h"

/* PATH is relative to the mount point, NAME a number of the view.  false: no further. */
typedef bool walk_visit(void *user, struct kp_span path, uint32_t name);

/*
 * Call VISIT for each name of a file in T, a tree of V: directory by directory, names in
 * bytewise order.  false: a visit said so.
 */
bool walk_files(const struct kp_view *v, const struct tree *t, walk_visit *visit,
		void *user);

#endif
