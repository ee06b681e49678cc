/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mount_point.h"

/* Undo the octal escapes of the mount table. */
static void unescape_path(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (*from == '\\' && strspn(from + 1, "01234567") >= 3) {
			*to++ = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 |
				       (from[3] - '0'));
			from += 3;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
}

/* True if a line of mountinfo is M's.  Sets *PATH to the mount point in the line. */
static bool parse_line(char *line, const struct mount_point *m, char **path)
{
	char *fields[5], *at = line, *type = strstr(line, " - "), device[32];

	for (size_t i = 0; i < 5; i++) {
		fields[i] = strsep(&at, " ");
		if (!fields[i])
			return false;
	}
	if (!type || strncmp(type, " - fuse", 7) != 0)
		return false;
	*path = fields[4];
	unescape_path(*path);
	if (!m->minor)
		return strcmp(*path, m->path) == 0;
	snprintf(device, sizeof(device), "0:%u", m->minor);
	return strcmp(fields[2], device) == 0;
}

/*
 * True if M has gone.  Then the device may belong to another mount: the system ends the
 * connection first.
 */
static bool has_gone(const struct mount_point *m)
{
	struct pollfd p = {.fd = m->connection};

	return poll(&p, 1, 0) > 0 && p.revents & (POLLERR | POLLHUP | POLLNVAL);
}

static bool look_up_mount(const struct mount_point *m, char *path, size_t size)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, *at;
	size_t room = 0;
	bool found = false, here = false;

	while (f && !here && getline(&line, &room, f) > 0) {
		if (!parse_line(line, m, &at) || strlen(at) >= size)
			continue;
		here = strcmp(at, m->path) == 0;
		found = true;
		memcpy(path, at, strlen(at) + 1);
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

bool mount_point_find(const struct mount_point *m, char *path, size_t size)
{
	return look_up_mount(m, path, size) && !has_gone(m);
}

bool mount_point_is(const struct mount_point *m)
{
	char path[PATH_MAX];

	return mount_point_find(m, path, sizeof(path));
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

static enum unmount unmount_outcome(void)
{
	return errno == EBUSY ? UNMOUNT_BUSY : UNMOUNT_FAILED;
}

enum unmount mount_point_unmount(const struct mount_point *m, bool lazy)
{
	char path[PATH_MAX];

	if (!mount_point_find(m, path, sizeof(path)))
		return UNMOUNT_DONE;
	if (umount2(path, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
		return UNMOUNT_DONE;
	if (errno == EPERM && run_fusermount(path, lazy))
		return UNMOUNT_DONE;
	return unmount_outcome();
}

enum unmount mount_point_expire(const struct mount_point *m)
{
	char path[PATH_MAX];

	if (!mount_point_find(m, path, sizeof(path)))
		return UNMOUNT_DONE;
	if (umount2(path, UMOUNT_NOFOLLOW | MNT_EXPIRE) == 0)
		return UNMOUNT_DONE;
	return errno == EAGAIN ? UNMOUNT_BUSY : unmount_outcome();
}
