/* SPDX-License-Identifier: MIT */
/* Landlock: puts files, networks and other processes out of reach. */
#ifndef FS_SANDBOX_LANDLOCK_H
#define FS_SANDBOX_LANDLOCK_H

/*
 * Forbid this thread, and threads it starts later, to open or change any file but DEVICE
 * (NULL: none), and, as far as the kernel can, to use TCP and to reach other processes by
 * signals and abstract sockets.  Open files stay usable.  no_new_privs must be set.  0,
 * or an errno: ENOSYS or EOPNOTSUPP if the kernel has no Landlock.
 */
int landlock_enter(const char *device);

#endif
