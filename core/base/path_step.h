/* SPDX-License-Identifier: MIT */
/*
 * One step of a path, by a single component.  Root takes none into a FUSE file system that
 * another user has mounted, because that user's server answers when it likes, or never:
 * then these calls, which ask it nothing, return -1 with errno EREMOTE.  A user namespace
 * has no other users.  Without /proc nothing is known of mounts.
 */
#ifndef KP_CORE_PATHS_STEP_H
#define KP_CORE_PATHS_STEP_H

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Directories are passed through without the right to list them. */
#define KP_STEP_PASS (O_PATH | O_DIRECTORY | O_CLOEXEC)

/* Whether this process is kept out of other users' file systems. */
bool kp_step_is_guarded(void);
/* 0, or -1: FD, which may have been opened with O_PATH, is in one of them. */
int kp_step_check(int fd);
/* As openat, with O_CLOEXEC. */
int kp_step_openat(int dir, const char *name, int flags, mode_t mode);
/* As fstatat, without following a link. */
int kp_step_lstat(int dir, const char *name, struct stat *st);
/*
 * Open PATH as openat with O_CLOEXEC, unless it leads out of the mount that it begins in.
 * STEP: it does, or the kernel has no openat2.
 */
int kp_step_within(int dir, const char *path, int flags, mode_t mode, bool *step);
/* Open again, without O_PATH, the file that is open at FOUND with it. */
int kp_step_reopen(int found, int flags, mode_t mode);
/* What EREMOTE means here, for messages. */
#define KP_STEP_REFUSED                                                                  \
	"another user has mounted a FUSE file system there, and can let this program "   \
	"wait for ever: unmount it"

/* Close FD, unless it is -1, keeping errno. */
void kp_close_keeping_errno(int fd);

/* A name that leads to a descriptor, also to one of O_PATH. */
enum { KP_FD_NAME_SIZE = 32 };
const char *kp_fd_name(int fd, char out[KP_FD_NAME_SIZE]);

#endif
