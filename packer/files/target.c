/* SPDX-License-Identifier: MIT */
#include "target.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "below.h"
#include "resolve.h"
#include "core/base/path_step.h"

/* Open T's file, unless it is missing. */
static int open_target(struct below_target *t)
{
	t->fd = openat(t->dir, t->name,
		       O_PATH | O_CLOEXEC | (t->is_open ? 0 : O_NOFOLLOW));
	if (t->fd < 0)
		return errno == ENOENT ? 0 : -1;
	if (fstat(t->fd, &t->st) < 0)
		return -1;
	if (!S_ISLNK(t->st.st_mode))
		return 0;
	errno = ELOOP; /* a link has taken the file's place meanwhile */
	return -1;
}

int below_target_open(struct below_target *t, const char *path)
{
	const char *rest = NULL;
	int root = resolve_root(path, &rest), status;
	struct spot at;

	*t = (struct below_target){.dir = -1, .fd = -1};
	status = root < 0 ? resolve_spot(path, SPOT_FOLLOWED, &at)
			  : resolve_operand(root, *rest ? rest : ".", true, &at);
	if (status < 0)
		return -1;
	t->dir = at.dir;
	t->name = at.name;
	t->is_open = at.magic;
	if (open_target(t) == 0) {
		if (t->fd >= 0 || path[strlen(path) - 1] != '/')
			return 0;
		errno = EISDIR; /* no file can be made with this name */
	}
	below_target_close(t);
	return -1;
}

void below_target_close(struct below_target *t)
{
	kp_close_keeping_errno(t->fd);
	kp_close_keeping_errno(t->dir);
	free(t->name);
	*t = (struct below_target){.dir = -1, .fd = -1};
}

/* Without /proc, open the name, and look whether it still is that file. */
static int reopen_by_name(const struct below_target *t, int flags)
{
	int fd = openat(t->dir, t->name,
			(flags & ~O_TRUNC) | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && st.st_dev == t->st.st_dev &&
	    st.st_ino == t->st.st_ino) {
		if (!(flags & O_TRUNC) || !S_ISREG(st.st_mode) || ftruncate(fd, 0) == 0)
			return fd;
	} else {
		errno = ESTALE;
	}
	kp_close_keeping_errno(fd);
	return -1;
}

int below_target_reopen(const struct below_target *t, int flags)
{
	char proc[KP_FD_NAME_SIZE];
	int fd = open(kp_fd_name(t->fd, proc), flags | O_CLOEXEC | O_NOCTTY);

	return fd < 0 && errno == ENOENT ? reopen_by_name(t, flags) : fd;
}

int below_target_access(const struct below_target *t, int mode)
{
	char proc[KP_FD_NAME_SIZE];
	int status = faccessat(AT_FDCWD, kp_fd_name(t->fd, proc), mode, AT_EACCESS);

	return status < 0 && errno == ENOENT
		       ? faccessat(t->dir, t->name, mode, AT_EACCESS) /* no /proc */
		       : status;
}

int below_target_named(const struct below_target *t, struct stat *st)
{
	return fstatat(t->dir, t->name, st, AT_SYMLINK_NOFOLLOW);
}

int below_target_unlink(const struct below_target *t)
{
	return unlinkat(t->dir, t->name, 0);
}

kpack_error_t below_target_outfile(const struct below_target *t, struct kp_outfile *out,
				   mode_t mode, struct kpackx_error *why)
{
	int dir = openat(t->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*out = (struct kp_outfile){.fd = -1, .dir_fd = -1};
	if (dir < 0)
		return below_fail(why, "cannot open its directory");
	return kp_outfile_open_at(out, dir, t->name, mode, why);
}

bool below_target_trusted(const struct below_target *t)
{
	struct stat dir;

	if (geteuid() != 0 || t->is_open)
		return true;
	/* root's only name of a file cannot be a hard link that somebody else made */
	if (t->st.st_uid == 0 && t->st.st_nlink == 1)
		return true;
	return fstat(t->dir, &dir) == 0 && dir.st_uid == 0 &&
	       !(dir.st_mode & (S_IWGRP | S_IWOTH));
}
