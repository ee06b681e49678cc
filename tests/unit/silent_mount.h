/* SPDX-License-Identifier: MIT */
/* A FUSE file system that never answers. */
#ifndef TESTS_UNIT_SILENT_MOUNT_H
#define TESTS_UNIT_SILENT_MOUNT_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Mount one of USER's on PATH, a file or directory as KIND says.  Its connection, or -1. */
static inline int silent_mount(const char *path, unsigned user, mode_t kind)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char data[128];

	snprintf(data, sizeof(data),
		 "fd=%d,rootmode=%o,user_id=%u,group_id=%u,allow_other", fd, kind, user,
		 user);
	if (fd >= 0 && mount("user_id=0", path, "fuse", MS_NOSUID | MS_NODEV, data) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static inline void silent_unmount(const char *path, int connection)
{
	umount2(path, MNT_DETACH);
	close(connection);
}

#endif
