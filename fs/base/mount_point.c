/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
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
#include "core/base/text.h"
#include "mount_point.h"

/* A place where the mount is. */
struct place {
	char path[PATH_MAX];
	long id; /* the mount's, of this place alone */
};

/*
 * Whether this process's user has mounted the FUSE file system of TYPE, "TYPE SOURCE
 * OPTIONS": no user can mount one with another user's number.
 */
static bool is_own(const char *type)
{
	const char *source = strchr(type, ' ');
	const char *options = source ? strchr(source + 1, ' ') : NULL;
	char user[32];

	snprintf(user, sizeof(user), ",user_id=%u,", (unsigned)getuid());
	return options && strstr(options, user);
}

/*
 * True if a line of mountinfo is M's.  Sets *PATH to the mount point in the line, and *ID
 * to the mount's.
 */
static bool parse_line(char *line, const struct mount_point *m, char **path, long *id)
{
	char *fields[5], *at = line, *type = strstr(line, " - "), device[32];

	for (size_t i = 0; i < 5; i++) {
		fields[i] = strsep(&at, " ");
		if (!fields[i])
			return false;
	}
	if (!type || strncmp(type, " - fuse", 7) != 0)
		return false;
	*id = strtol(fields[0], NULL, 10);
	*path = fields[4];
	kp_text_unescape(*path);
	if (!m->minor)
		return strcmp(*path, m->path) == 0 && is_own(type + strlen(" - "));
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

static bool look_up_mount(const struct mount_point *m, struct place *out)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, *at;
	size_t room = 0;
	bool found = false, here = false;
	long id;

	while (f && !here && getline(&line, &room, f) > 0) {
		if (!parse_line(line, m, &at, &id) || strlen(at) >= sizeof(out->path))
			continue;
		here = strcmp(at, m->path) == 0;
		found = true;
		out->id = id;
		memcpy(out->path, at, strlen(at) + 1);
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

/* Find where M is mounted now, its own path first; false: nowhere. */
static bool find_mount(const struct mount_point *m, struct place *out)
{
	return look_up_mount(m, out) && !has_gone(m);
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

/* The ID of the mount that NAME in the directory DIR is in; no file system is asked. */
static long mount_id_of(int dir, const char *name)
{
	int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	const char key[] = "mnt_id:";
	char info[64], line[256];
	long id = -1;
	FILE *f;

	snprintf(info, sizeof(info), "/proc/self/fdinfo/%d", fd);
	f = fd < 0 ? NULL : fopen(info, "re");
	while (f && id < 0 && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			id = strtol(line + strlen(key), NULL, 10);
	if (f)
		fclose(f);
	if (fd >= 0)
		close(fd);
	return id;
}

/* Whether the open directory DIR is at PATH, which may end with slashes. */
static bool is_at(int dir, const char *path)
{
	char link[64], at[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	n = readlink(link, at, sizeof(at));
	return n > 0 && n < (ssize_t)sizeof(at) && strncmp(at, path, (size_t)n) == 0 &&
	       path[n + strspn(path + n, "/")] == '\0';
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
	int dir, result = -1, error = EBUSY;

	snprintf(parent, sizeof(parent), "%.*s", (int)(name - p->path), p->path);
	dir = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -1;
	name = *name ? name : ".";
	if (flags & MNT_EXPIRE ? is_at(dir, parent) : mount_id_of(dir, name) == p->id) {
		snprintf(at, sizeof(at), "/proc/self/fd/%d/%s", dir, name);
		result = umount2(at, UMOUNT_NOFOLLOW | flags);
		error = errno;
	}
	close(dir);
	errno = error;
	return result;
}

static enum unmount unmount_outcome(void)
{
	return errno == EBUSY ? UNMOUNT_BUSY : UNMOUNT_FAILED;
}

enum unmount mount_point_unmount(const struct mount_point *m, bool lazy)
{
	struct place p;

	if (!find_mount(m, &p))
		return UNMOUNT_DONE;
	if (unmount_place(&p, lazy ? MNT_DETACH : 0) == 0)
		return UNMOUNT_DONE;
	if (errno == EPERM && run_fusermount(p.path, lazy))
		return UNMOUNT_DONE;
	return unmount_outcome();
}

enum unmount mount_point_expire(const struct mount_point *m)
{
	struct place p;

	if (!find_mount(m, &p))
		return UNMOUNT_DONE;
	if (unmount_place(&p, MNT_EXPIRE) == 0)
		return UNMOUNT_DONE;
	return errno == EAGAIN ? UNMOUNT_BUSY : unmount_outcome();
}
