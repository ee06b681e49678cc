/* SPDX-License-Identifier: MIT */
#include "firm_path.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include "core/base/path_step.h"
#include "core/base/path_walk.h"

/* Whether only root can put something else in the place of the entry ST of DIR. */
static bool is_firm(int dir, const struct stat *entry)
{
	struct stat st;

	if (fstat(dir, &st) || st.st_uid != 0)
		return false;
	return !(st.st_mode & (S_IWGRP | S_IWOTH)) ||
	       ((st.st_mode & S_ISVTX) && entry->st_uid == 0);
}

/* Step to NAME, which is open at FD and not followed, or follow it. */
static bool step_to(struct kp_walk *w, const char *name, int fd, bool *firm)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	if (S_ISLNK(st.st_mode)) {
		errno = ELOOP;
		return (kp_walk_is_magic(fd) || is_firm(w->at, &st)) &&
		       kp_walk_follow(w, name, fd);
	}
	*firm = *firm && is_firm(w->at, &st);
	/* O_DIRECTORY mounts what is mounted on demand on the way */
	return kp_walk_go(w,
			  kp_step_openat(w->at, name,
					 O_PATH | O_NOFOLLOW | O_CLOEXEC |
						 (kp_walk_is_last(w) ? 0 : O_DIRECTORY),
					 0));
}

int firm_path_open(const char *path, bool *firm)
{
	struct kp_walk w;
	char name[NAME_MAX + 1];
	bool fine = kp_walk_begin(&w, path);
	int fd;

	*firm = true;
	while (fine && kp_walk_name(&w, name)) {
		fd = kp_step_openat(w.at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
		fine = fd >= 0 && step_to(&w, name, fd, firm);
		kp_close_keeping_errno(fd);
	}
	fd = -1;
	if (fine && !errno) {
		fd = w.at;
		w.at = -1;
	}
	kp_walk_end(&w);
	return fd;
}
