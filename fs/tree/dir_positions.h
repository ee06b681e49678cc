/* SPDX-License-Identifier: MIT */
/*
 * Positions in directories that outlive the edition they are of: who is in the middle of a
 * listing when names come and go sees every name that stays exactly once.
 *
 * A position is the place of a name in its directory, and which edition counts so.  A swap
 * notes where the names of each directory that changed went to; the last swaps are
 * remembered, and a position older than that is taken as it is.
 */
#ifndef FS_TREE_DIR_POSITIONS_H
#define FS_TREE_DIR_POSITIONS_H

#include "edition.h"

struct shift;

struct dir_positions {
	uint64_t edition;    /* number of the current one */
	struct shift *first; /* the latest swap first */
	size_t count;        /* names they are about */
};

/* Where the names of directory A of one edition are in B of the next.  NULL: where they were. */
struct shift *shift_new(const struct edition *from, struct tree_node a,
			const struct edition *to, struct tree_node b);
/* Put S, or nothing, in front of LIST. */
struct shift *shift_joined(struct shift *s, struct shift *list);
void shifts_free(struct shift *list);

/* The next edition is the current one now.  Takes what the swap shifted. */
void dir_positions_advance(struct dir_positions *p, struct shift *list);

/* For telldir: name number INDEX of a directory of the current edition. */
uint64_t dir_positions_tell(const struct dir_positions *p, uint64_t index);

/*
 * The present number of the name of directory DIR that had the given position, or of the
 * name after it.
 */
uint64_t dir_positions_find(const struct dir_positions *p, uint64_t dir, uint64_t told);

void dir_positions_fini(struct dir_positions *p);

#endif
