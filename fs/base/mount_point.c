/* SPDX-License-Identifier: MIT */
/*
 * A path says little about a mount: another user may have exchanged its directories,
 * something may be mounted on top, or the mount may have been moved or bound elsewhere.
 * So each call reads the mount table and finds the entry by its device; then it opens the
 * directory that the mount is in, compares the mount's ID there, and unmounts by a path
 * that begins at this descriptor.  Ordinary users unmount with fusermount3, which has
 * checks of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/base/alloc.h"
#include "core/base/mountinfo.h"
#include "mount_point.h"

/* A place where the mount is. */
struct place {
	char path[PATH_MAX];
	long id; /* the mount's, of this place alone */
};

/*
 * Find where M is mounted now, its own path first; if its device is not known, it has its path
 * and is this user's.  false: nowhere.
 */
static bool find_mount(const struct mount_point *m, struct place *out)
{
	struct pollfd connection = {.fd = m->connection};
	bool found = false, here = false;
	struct kp_mounts mounts;
	struct kp_mount listed;
	uid_t user; /* the kernel lets no user state another's number */

	kp_mounts_open(&mounts);
	while (!here && kp_mounts_next(&mounts, &listed)) {
		size_t n = strlen(listed.path);

		if (!kp_mount_fuse_user(&listed, &user) || n >= sizeof(out->path) ||
		    !(m->minor ? listed.device == makedev(0, m->minor)
			       : user == getuid() && strcmp(listed.path, m->path) == 0))
			continue;
		here = strcmp(listed.path, m->path) == 0;
		found = true;
		out->id = listed.id;
		memcpy(out->path, listed.path, n + 1);
	}
	kp_mounts_close(&mounts);
	/* If M has gone, the device may belong to another mount: the system ends the
	 * connection first. */
	return found && !(poll(&connection, 1, 0) > 0 &&
			  connection.revents & (POLLERR | POLLHUP | POLLNVAL));
}

bool mount_point_is(const struct mount_point *m)
{
	struct place p;

	return find_mount(m, &p);
}

/* Unmount with fusermount3, a set-user-ID program for ordinary users. */
static bool run_fusermount(const char *path, bool lazy)
{
	const char *argv[] = {"fusermount3", "-q", lazy ? "-uz" : "-u", "--", path, NULL};
	posix_spawnattr_t attr;
	sigset_t none;
	int status = -1, err;
	pid_t pid;

	sigemptyset(&none);
	if (posix_spawnattr_init(&attr))
		return false;
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	err = posix_spawnp(&pid, argv[0], NULL, &attr, (char *const *)(void *)argv,
			   environ);
	posix_spawnattr_destroy(&attr);
	if (err) {
		errno = err;
		return false;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	errno = EBUSY;
	return status == 0;
}

/*
 * Unmount what is at P, if it is the mount of P's ID.  Its directory is opened, because
 * another user may exchange those of the path; a name where something is mounted stays.
 * With MNT_EXPIRE the mount itself is not opened, as that would count as use.
 */
static int unmount_place(const struct place *p, int flags)
{
	char parent[PATH_MAX], at[PATH_MAX + 32];
	const char *name = strrchr(p->path, '/') + 1;
	KP_AUTO_CLOSE int dir = -1;
	ssize_t n;
	bool same;

	snprintf(parent, sizeof(parent), "%.*s", (int)(name - p->path), p->path);
	dir = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -1;
	name = *name ? name : ".";
	if (flags & MNT_EXPIRE) {
		char link[64], now[PATH_MAX];

		/* the directory itself must still be where the path led, which may end with slashes */
		snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
		n = readlink(link, now, sizeof(now));
		same = n > 0 && n < (ssize_t)sizeof(now) &&
		       strncmp(now, parent, (size_t)n) == 0 &&
		       parent[n + strspn(parent + n, "/")] == '\0';
	} else {
		KP_AUTO_CLOSE int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

		same = kp_fd_info(fd, "mnt_id:") == p->id; /* no file system is asked */
	}
	errno = EBUSY;
	snprintf(at, sizeof(at), "/proc/self/fd/%d/%s", dir, name);
	return same ? umount2(at, UMOUNT_NOFOLLOW | flags) : -1;
}

static enum unmount unmount_found(const struct place *p, bool lazy)
{
	if (unmount_place(p, lazy ? MNT_DETACH : 0) == 0)
		return UNMOUNT_DONE;
	if (errno == EPERM && run_fusermount(p->path, lazy))
		return UNMOUNT_DONE;
	return errno == EBUSY ? UNMOUNT_BUSY : UNMOUNT_FAILED;
}

enum unmount mount_point_unmount(const struct mount_point *m, bool lazy)
{
	struct place p;

	return find_mount(m, &p) ? unmount_found(&p, lazy) : UNMOUNT_DONE;
}

enum unmount mount_point_unmount_id(const char *path, long id, bool lazy)
{
	struct place p = {.id = id};
	size_t n = strlen(path);

	if (n >= sizeof(p.path)) {
		errno = ENAMETOOLONG;
		return UNMOUNT_FAILED;
	}
	memcpy(p.path, path, n + 1);
	return unmount_found(&p, lazy);
}

enum unmount mount_point_expire(const struct mount_point *m)
{
	struct place p;

	if (!find_mount(m, &p))
		return UNMOUNT_DONE;
	if (unmount_place(&p, MNT_EXPIRE) == 0)
		return UNMOUNT_DONE;
	return errno == EAGAIN || errno == EBUSY ? UNMOUNT_BUSY : UNMOUNT_FAILED;
}
