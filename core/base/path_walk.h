/* SPDX-License-Identifier: MIT */
/*
 * Walks along paths by the steps of step.h.  Every link is followed, except that a guarded
 * process follows none that the kernel would not by default: the last component, in a sticky
 * directory that all may write, if it is neither the process's nor of the directory's owner.
 */
#ifndef KP_CORE_PATHS_WALK_H
#define KP_CORE_PATHS_WALK_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include "errors.h"

struct kp_walk {
	int at;           /* what was reached, opened with O_PATH; -1: nothing */
	char *path;       /* what REST is in; owned */
	const char *rest; /* the components still to take */
	int links;        /* that were followed */
};

/* Begin where PATH begins.  false: see errno; kp_walk_end must be called all the same. */
bool kp_walk_begin(struct kp_walk *w, const char *path);
/*
 * Take the next component; components "." are left out.  false: none is left, and errno is
 * 0; or errno says why not.
 */
bool kp_walk_name(struct kp_walk *w, char name[NAME_MAX + 1]);
/* Whether the component that was taken is the last. */
bool kp_walk_is_last(const struct kp_walk *w);
/*
 * Step to NAME.  If it is a link, the components of its text come next, except for links of
 * /proc, which the kernel follows.  What is mounted there on demand is mounted.  false: see
 * errno.
 */
bool kp_walk_step(struct kp_walk *w, const char *name);
void kp_walk_end(struct kp_walk *w);

/* The parts of a step, for other rules.  Go to FD, which is taken over; -1: false. */
bool kp_walk_go(struct kp_walk *w, int fd);
/* Whether the link open at FD is one of /proc. */
bool kp_walk_is_magic(int fd);
/* Follow the link NAME, which is open at FD. */
bool kp_walk_follow(struct kp_walk *w, const char *name, int fd);

/*
 * As open with O_CLOEXEC, which is not interrupted, and as stat or, without FOLLOW, lstat.
 * A guarded process steps along the path.
 */
int kp_path_open(const char *path, int flags);
int kp_path_stat(const char *path, bool follow, struct stat *st);
/* As kp_fail_errno with errno, for a call of this folder. */
kpack_error_t kp_path_fail(struct kpackx_error *why, const char *what);

#endif
