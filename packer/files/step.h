/* SPDX-License-Identifier: MIT */
/*
 * One step of a path, by a single component.  Root takes none into a FUSE file system that
 * another user has mounted, because that user's server answers when it likes, or never:
 * then these calls, which ask it nothing, return -1 with errno EREMOTE.  A user namespace
 * has no other users.  Without /proc nothing is known of mounts.  Only for this folder.
 */
#ifndef PACKER_FILES_STEP_H
#define PACKER_FILES_STEP_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Whether this process is kept out of other users' file systems. */
bool step_is_guarded(void);
/* 0, or -1: FD, which may have been opened with O_PATH, is in one of them. */
int step_check(int fd);
/* As openat. */
int step_openat(int dir, const char *name, int flags, mode_t mode);
/* As fstatat, without following a link. */
int step_lstat(int dir, const char *name, struct stat *st);

#endif
