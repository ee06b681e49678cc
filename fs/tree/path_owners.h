/* SPDX-License-Identifier: MIT */
/*
 * Which entry each name of an edition's view stands for.  The view only keeps one entry for
 * each content, whatever names it has; who asks for a path wants the entry that asked for it.
 * Made on request, for it takes a walk over all entries.
 */
#ifndef FS_CLAIMS_H
#define FS_CLAIMS_H

#include "edition.h"
#include "core/view/entry_paths.h"

struct claims;

/* An entry of one of the edition's archives. */
struct claim {
	struct kpack_archive *archive;
	size_t entry;
};

/* E is borrowed, and so is what ARCHES has.  NULL: no memory. */
struct claims *claims_new(const struct edition *e, const struct arches *arches);
void claims_free(struct claims *c); /* NULL is fine */

/* Who holds NAME, a number of the view; false: it is a directory, or nobody. */
bool claims_holder(const struct claims *c, uint32_t name, struct claim *out);

/* The number of the name at PATH of the view; false: there is none. */
bool claims_find(struct claims *c, struct kp_span path, uint32_t *name);

/* Are entries of that architecture shown? */
bool claims_selects(struct claims *c, struct kp_span arch);

#endif
