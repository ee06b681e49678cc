/* SPDX-License-Identifier: MIT */
/*
 * Positions in directories that outlive their edition: a program that is in the middle of
 * a listing when names come and go sees every name that stays exactly once.
 *
 * A position is the number of a name in its directory, and the edition in which the name
 * has that number.  A swap records the new numbers of the names of each directory that
 * changed.  The last swaps are remembered; the number in an older position is used
 * unchanged.
 */
#ifndef FS_TREE_DIR_POSITIONS_H
#define FS_TREE_DIR_POSITIONS_H

#include "edition.h"

struct shift;

struct dir_positions {
	uint64_t edition;    /* number of the current edition */
	struct shift *first; /* the latest swap first */
	size_t count;        /* names in all shifts together */
};

/*
 * Map the names of directory A of one edition to their numbers in B of the next.  NULL:
 * no number changed, or no memory.
 */
struct shift *shift_new(const struct edition *from, struct tree_node a,
			const struct edition *to, struct tree_node b);
/* Put S, which may be NULL, in front of LIST. */
struct shift *shift_joined(struct shift *s, struct shift *list);

/* Make the next edition the current one.  Takes LIST, the shifts of the swap. */
void dir_positions_advance(struct dir_positions *p, struct shift *list);

/*
 * The position of name number INDEX of a directory of the current edition, for telldir.
 */
uint64_t dir_positions_encode(const struct dir_positions *p, uint64_t index);

/*
 * The present number of the name at POSITION in directory DIR; if that name has gone, the
 * number of the next name.
 */
uint64_t dir_positions_find(const struct dir_positions *p, uint64_t dir,
			    uint64_t position);

void dir_positions_fini(struct dir_positions *p);

#endif
