/* SPDX-License-Identifier: MIT */
/* A mount as the system has it: where it is now, and how it is taken away. */
#ifndef FS_SUPERVISOR_MOUNT_POINT_H
#define FS_SUPERVISOR_MOUNT_POINT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * What is mounted: known by its device, which moves with it, and which the system gives
 * to another mount as soon as this one has gone.
 */
struct mount_point {
	unsigned minor; /* 0: unknown, then by its path */
	int connection; /* of /dev/fuse: once it is over, so is the mount; -1: unknown */
	const char *path; /* where it was mounted; borrowed */
};

/* Where it is: at its path if it is there, else elsewhere; false: nowhere. */
bool mount_point_find(const struct mount_point *m, char *path, size_t size);

/* Is it mounted? */
bool mount_point_is(const struct mount_point *m);

/*
 * Unmount it, as root or with fusermount3, wherever it is. BUSY: files are in use, or the
 * system gives no reason.
 */
enum unmount {
	UNMOUNT_DONE,
	UNMOUNT_BUSY,
	UNMOUNT_FAILED, /* errno says why */
};
enum unmount mount_point_unmount(const struct mount_point *m, bool lazy);

/*
 * Unmount it if nothing touched it since the last call: BUSY when something did.  FAILED
 * with EPERM: root only.
 */
enum unmount mount_point_expire(const struct mount_point *m);

#endif
