/* SPDX-License-Identifier: MIT */
/*
 * The entry that each name of an edition's view stands for. The view keeps one entry for
 * each content, whatever names it has; a reader of facts about a path wants the entry
 * that asked for that path. Made on request, because it takes a walk over all entries.
 */
#ifndef FS_TREE_PATH_OWNERS_H
#define FS_TREE_PATH_OWNERS_H

#include "edition.h"
#include "core/view/entry_paths.h"

struct path_owners;

/* An entry of one of the edition's archives. */
struct claim {
	struct kpack_archive *archive;
	size_t entry;
};

/* E is borrowed, and so is what ARCHES has.  NULL: no memory. */
struct path_owners *path_owners_new(const struct edition *e, const struct arches *arches);
void path_owners_free(struct path_owners *c); /* NULL is fine */

/*
 * The entry that holds NAME, a number of the view; false: the name is a directory's, or
 * no entry's.
 */
bool path_owners_holder(const struct path_owners *c, uint32_t name, struct claim *out);

/* The number of the name at PATH of the view; false: there is none. */
bool path_owners_find(struct path_owners *c, struct kp_span path, uint32_t *name);

/* Are entries of that architecture shown? */
bool path_owners_selects(struct path_owners *c, struct kp_span arch);

#endif
