/* SPDX-License-Identifier: MIT */
/* Visits each file that a mount shows. */
#ifndef FS_TREE_WALK_H
#define FS_TREE_WALK_H

#include "tree.h"

/* PATH is relative to the mount point, NAME a number of the view.  false: stop. */
typedef bool walk_visit(void *user, struct kp_span path, uint32_t name);

/*
 * Call VISIT for each name of a file in T, a tree of V: directory by directory, names in
 * bytewise order.  false: VISIT returned false.
 */
bool walk_files(const struct kp_view *v, const struct tree *t, walk_visit *visit,
		void *user);

#endif
