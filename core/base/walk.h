/* SPDX-License-Identifier: MIT */
/*
 * Walks along a path one component at a time, through symbolic links, for callers that need
 * every directory on the way: to watch it, to make it, or to know that nobody can exchange it.
 */
#ifndef KP_CORE_BASE_WALK_H
#define KP_CORE_BASE_WALK_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

/* Links that are followed in one path, as the kernel does: more are a circle. */
enum { KP_WALK_LINKS_MAX = 40 };

struct kp_walk {
	int at;           /* what was reached, opened with O_PATH; -1: nothing */
	char *path;       /* what REST is in; owned */
	const char *rest; /* the components still to take */
	int links;        /* followed so far */
	bool wary;        /* root's: see kp_firm_path_open */
	bool firm;        /* so far, only root can exchange what was stepped through */
};

/*
 * Begin where PATH begins, in the directory START or AT_FDCWD.  false: see errno; kp_walk_end must
 * be called all the same.
 */
bool kp_walk_begin(struct kp_walk *w, int start, const char *path);
/*
 * Take the next component; components "." are left out.  false: none is left, and errno is
 * 0; or errno says why not.
 */
bool kp_walk_name(struct kp_walk *w, char name[NAME_MAX + 1]);
/* Whether the component that was taken is the last. */
bool kp_walk_is_last(const struct kp_walk *w);
/*
 * Step to NAME.  If it is a link, the components of its text come next, except for links of
 * /proc, which the kernel follows.  What is mounted there on demand is mounted, but not at the
 * end of a wary walk.  false: see errno.
 */
bool kp_walk_step(struct kp_walk *w, const char *name);
void kp_walk_end(struct kp_walk *w);

/* Whether ST is root's, and nobody else may write it. */
static inline bool kp_only_root_writes(const struct stat *st)
{
	return st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/*
 * Open what PATH leads to with O_PATH, without triggering an automount there.  A link is
 * only followed where nobody but root can put another: in a directory that is root's and
 * not writable for others, or in a sticky one if the link is root's; else -1 with ELOOP.
 * -1: see errno.  FIRM: only root can exchange any component of the absolute path PATH.
 */
int kp_firm_path_open(const char *path, bool *firm);

#endif
