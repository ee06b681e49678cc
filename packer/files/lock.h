/* SPDX-License-Identifier: MIT */
/*
 * Directories that runs lock with flock, so that they write into them one after the other.
 * Everybody who can open a directory can lock it: a run waits, and says for what.
 */
#ifndef PACKER_FILES_LOCK_H
#define PACKER_FILES_LOCK_H

#include <stdbool.h>

/*
 * Lock the directory or file PATH, which is open at FD, until lock_close or the end of the
 * process; wait for whoever has it locked, after a note.  False: the file system has no locks.
 */
bool lock_wait(int fd, const char *path);

/* Unlock and close FD; -1 is allowed. */
void lock_close(int fd);

#endif
