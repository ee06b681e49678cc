/* SPDX-License-Identifier: MIT */
/* Directories that runs lock with flock, so that they write into them one after the other. */
#ifndef PACKER_FILES_LOCK_H
#define PACKER_FILES_LOCK_H

#include <stdbool.h>
#include "core/base/errors.h"

/*
 * Lock the directory or file PATH, which is open at FD, until lock_close or the end of the
 * process; wait for other runs and, if that takes long, report it.  On a file system without
 * locks it is not LOCKED, which may be NULL.
 * Everybody who can open a directory can lock it and never give it back.  So root waits for
 * runs of root's on this machine as long as they take, but not for other processes where
 * only root can write.
 * IO_ERROR: elsewhere, or for a process that cannot be seen, the lock was not given back in
 * time.
 */
kpack_error_t lock_wait(int fd, const char *path, bool *locked, struct kpackx_error *why);

/* Unlock and close FD; -1 is allowed. */
void lock_close(int fd);

#endif
