/* SPDX-License-Identifier: MIT */
/*
 * Reads files of the mount before anybody asks for them, so that they are in the page
 * cache then: in a process of its own, which gives way to all others.
 */
#ifndef FS_SUPERVISOR_PRELOAD_H
#define FS_SUPERVISOR_PRELOAD_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Begin to read what matches one of N patterns: paths below ROOT, as fnmatch(3) does it,
 * with * and ? matching no slash.  A pattern that matches nothing is logged.
 * CLOSE_THESE, ends whose other sides would not notice else, are closed there.  Returns
 * the process, which ends by itself, or -1, which was logged.
 */
pid_t preload_start(const char *root, char *const *patterns, size_t n,
		    const int close_these[2]);

#endif
