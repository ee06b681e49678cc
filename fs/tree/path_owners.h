/* SPDX-License-Identifier: MIT */
/*
 * Maps each name of an edition's view to the entry that owns it.  The view keeps only one
 * entry for each content, whatever names the content has; a reader of facts about a path
 * wants the entry that has that path.  Made on request, because it takes a walk over all
 * entries.
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

/* E and the list of ARCHES are borrowed.  NULL: no memory. */
struct path_owners *path_owners_new(const struct edition *e,
				    const struct kp_choice *arches);
void path_owners_free(struct path_owners *c); /* NULL is fine */

/*
 * The entry that owns name number NAME of the view; false: NAME is a directory, or no
 * entry owns it.
 */
bool path_owners_holder(const struct path_owners *c, uint32_t name, struct claim *out);

/* The number of the name at PATH of the view; false: PATH does not exist. */
bool path_owners_find(struct path_owners *c, struct kp_span path, uint32_t *name);

/* As kp_entry_paths, for the edition's view. */
size_t path_owners_paths(const struct path_owners *c, const struct kpack_archive *a,
			 size_t entry, struct kp_entry_path out[KP_ENTRY_PATHS]);

/* True if entries of the architecture ARCH are shown. */
bool path_owners_selects(struct path_owners *c, struct kp_span arch);

#endif
