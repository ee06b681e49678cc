/* SPDX-License-Identifier: MIT */
/* Landlock: files, networks and processes that are out of reach from now on. */
#ifndef FS_SANDBOX_LANDLOCK_H
#define FS_SANDBOX_LANDLOCK_H

/*
 * Refuse this thread, and those it starts later, to open or change any file but DEVICE
 * (NULL: none), and, as far as the kernel can, to use TCP, and to reach other processes
 * by signals and abstract sockets.  What is open stays usable.  no_new_privs must be set.
 * 0, or an errno: ENOSYS and EOPNOTSUPP where the kernel has no Landlock.
 */
int landlock_enter(const char *device);

#endif
