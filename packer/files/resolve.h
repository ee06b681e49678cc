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
	SPOT_FOLLOWED, /* follow an operand's last component too */
};

/* Find the innermost root of PATH, and what PATH is below it.  -1: PATH is an operand. */
int resolve_root(const char *path, const char **rest);
/* Take over FD as the root PATH. */
void resolve_add_root(const char *path, int fd);
/*
 * The directory PATH was removed: if it was a root in another one, another directory that
 * gets its name is looked for in that one.
 */
void resolve_remove_root(const char *path);

/* Find the place of PATH: below a root without links, or as an operand.  0, or -1. */
int resolve_spot(const char *path, enum spot_kind which, struct spot *at);
void spot_close(struct spot *at);

/*
 * Return what PATH is below the root *ROOT, without "..", on the heap.  NULL: PATH is an
 * operand.  PROPER: a root itself is below the one around it.
 */
char *resolve_rest(const char *path, bool proper, int *root);
/* Find REST, which has no "..", below the root ROOT.  Its directory is opened with FLAGS. */
int resolve_inside(int root, const char *rest, int flags, struct spot *at);
/*
 * Open REST ("": the root itself) below the root FD; no link is followed, but a link itself can
 * be opened with O_PATH and O_NOFOLLOW.
 */
int resolve_open(int fd, const char *rest, int flags, mode_t mode);
/*
 * Resolve PATH, which begins in the directory START, by the rules for operands.  FOLLOW:
 * its last component too.  The last component need not exist.
 */
int resolve_operand(int start, const char *path, bool follow, struct spot *at);

#endif
