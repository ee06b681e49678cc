/* SPDX-License-Identifier: MIT */
/* A filter that allows only the system calls that a server needs. */
#ifndef FS_SANDBOX_SYSCALL_FILTER_H
#define FS_SANDBOX_SYSCALL_FILTER_H

#include <stdbool.h>

/*
 * Forbid this thread, and threads it starts later, all other system calls.  OPEN_DEVICE:
 * /dev/fuse may be opened.  RINGS: io_uring may be used, whose requests no filter sees.
 * no_new_privs must be set.  0, or an errno: ENOSYS if this build has no filter, EINVAL
 * if the kernel has none.
 */
int syscall_filter_load(bool open_device, bool rings);

#endif
