/* SPDX-License-Identifier: MIT */
/* Directories that runs lock with flock, so that they write into them one after the other. */
#ifndef PACKER_FILES_LOCK_H
#define PACKER_FILES_LOCK_H

#include <stdbool.h>
#include "core/base/errors.h"

/*
 * Lock the directory or file PATH, which is open at FD, until FD is closed; wait for other runs and,
 * if that takes long, report it.  On a file system without locks it is not LOCKED, which may
 * be NULL.
 * IO_ERROR: root waits for runs of root's on this machine, but for no other process,
 * because everybody who can open it can lock it and never give it back.
 */
kpack_error_t lock_wait(int fd, const char *path, bool *locked, struct kpackx_error *why);

#endif
