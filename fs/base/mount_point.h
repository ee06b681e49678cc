/* SPDX-License-Identifier: MIT */
/* Finds the mount in the system's mount table, wherever it was moved, and unmounts it. */
#ifndef FS_BASE_MOUNT_POINT_H
#define FS_BASE_MOUNT_POINT_H

#include <stdbool.h>

/*
 * A mount, identified by its device.  The device moves with the mount, but the system may
 * give it to another mount as soon as this one has gone.
 */
struct mount_point {
	unsigned minor; /* of the device; 0: unknown, then path and user identify it */
	int connection; /* of /dev/fuse: if it has ended, so has the mount; -1: unknown */
	const char *path; /* where it was mounted; borrowed */
};

/* True if M is mounted. */
bool mount_point_is(const struct mount_point *m);

/*
 * Unmount M wherever it is, and nothing else, as root or with fusermount3.  BUSY: files
 * are in use, another mount is on top, or the system gives no reason.
 */
enum unmount {
	UNMOUNT_DONE,
	UNMOUNT_BUSY,
	UNMOUNT_FAILED, /* errno says why */
};
enum unmount mount_point_unmount(const struct mount_point *m, bool lazy);

/* Unmount the mount ID of the mount table, of any kind, which is at the absolute PATH. */
enum unmount mount_point_unmount_id(const char *path, long id, bool lazy);

/*
 * Unmount M if it was not used since the last call, else return BUSY.  FAILED with EPERM:
 * only root may do this.
 */
enum unmount mount_point_expire(const struct mount_point *m);

#endif
