/* SPDX-License-Identifier: MIT */
/*
 * Reads files of the mount in advance, so that they are in the page cache when a program
 * asks for them.  This runs in a process of its own with the lowest priority.
 */
#ifndef FS_SUPERVISOR_PRELOAD_H
#define FS_SUPERVISOR_PRELOAD_H

#include <stddef.h>
#include <sys/types.h>
#include "fs/base/mount_point.h"

/*
 * Start a process that reads the files of the mount M whose paths match one of N patterns,
 * as in fnmatch(3), with * and ? matching no slash.  A pattern that matches no file is
 * logged.  The process closes CLOSE_THESE, because the other sides of these connections
 * would not notice their end otherwise.  Returns the process's ID; it ends by itself.
 * -1: it failed; logged.
 */
pid_t preload_start(const struct mount_point *m, char *const *patterns, size_t n,
		    const int close_these[2]);

#endif
