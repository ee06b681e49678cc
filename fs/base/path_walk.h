/* SPDX-License-Identifier: MIT */
/*
 * Walks along a path one component at a time, through symbolic links, for callers that need
 * every directory on the way: to watch it, or to know that nobody can exchange it.
 */
#ifndef FS_BASE_PATH_WALK_H
#define FS_BASE_PATH_WALK_H

#include <limits.h>
#include <stdbool.h>

struct path_walk {
	int at;           /* what was reached, opened with O_PATH; -1: nothing */
	char *path;       /* what REST is in; owned */
	const char *rest; /* the components still to take */
	int links;        /* that were followed */
	bool wary;        /* see firm_path_open */
	bool firm;        /* so far, only root can exchange what was stepped through */
};

/* Begin where PATH begins.  false: see errno; path_walk_end must be called all the same. */
bool path_walk_begin(struct path_walk *w, const char *path);
/*
 * Take the next component; components "." are left out.  false: none is left, and errno is
 * 0; or errno says why not.
 */
bool path_walk_name(struct path_walk *w, char name[NAME_MAX + 1]);
/* Whether the component that was taken is the last. */
bool path_walk_is_last(const struct path_walk *w);
/*
 * Step to NAME.  If it is a link, the components of its text come next, except for links of
 * /proc, which the kernel follows.  What is mounted there on demand is mounted, but not at the
 * end of a wary walk.  false: see errno.
 */
bool path_walk_step(struct path_walk *w, const char *name);
void path_walk_end(struct path_walk *w);

/*
 * Open what PATH leads to with O_PATH, without triggering an automount there.  A link is
 * only followed where nobody but root can put another: in a directory that is root's and
 * not writable for others, or in a sticky one if the link is root's; else -1 with ELOOP.
 * -1: see errno.  FIRM: only root can exchange any component of the absolute path PATH.
 */
int firm_path_open(const char *path, bool *firm);

#endif
