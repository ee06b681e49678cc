/* SPDX-License-Identifier: MIT */
/* The system calls a server needs, and a filter that lets only them through. */
#ifndef FS_SANDBOX_SYSCALL_FILTER_H
#define FS_SANDBOX_SYSCALL_FILTER_H

#include <stdbool.h>

/*
 * Let this thread, and those it starts later, make no other system calls; /dev/fuse is
 * opened once more with OPEN_DEVICE.  With RINGS io_uring may be used, whose requests no
 * filter sees.  no_new_privs must be set.  0, or an errno: ENOSYS when it was not built
 * in, EINVAL where the kernel has no filters.
 */
int syscall_filter_load(bool open_device, bool rings);

#endif
