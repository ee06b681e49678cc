/* SPDX-License-Identifier: MIT */
/*
 * How paths are resolved (see below.h, whose calls use this): the roots, what is below
 * them, and operands.  Only for this folder.
 */
#ifndef PACKER_FILES_RESOLVE_H
#define PACKER_FILES_RESOLVE_H

#include <stdbool.h>
#include <sys/types.h>

/* A path, taken apart: its directory, and the last component. */
struct spot {
	int dir; /* O_PATH, unless flags were given */
	char *name;
	bool magic; /* a link of /proc, which the kernel must follow */
};

/* Which spot of a path is asked for. */
enum spot_kind {
	SPOT_ITSELF,   /* a root's is the root itself */
	SPOT_OF_NAME,  /* a root's is in its parent: to rename or remove it */
	SPOT_FOLLOWED, /* follow the last component too */
};

/*
 * Find the innermost root of PATH, of equals the last that was added, and what PATH is below it; if
 * PROPER, not PATH itself.  -1: PATH is an operand.
 */
int resolve_root(const char *path, bool proper, const char **rest);

/*
 * Find the spot of PATH: below a root without links, or as an operand.  If it is followed, that
 * is by the rules for operands in a root, too.  0, or -1.
 */
int resolve_spot(const char *path, enum spot_kind which, struct spot *at);
void spot_close(struct spot *at);

#endif
