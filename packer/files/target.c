/* SPDX-License-Identifier: MIT */
/*
 * Files that are found or made under one name: what a path leads to through links, what a command
 * prints to, and what is made under a temporary name and then renamed, because it cannot be made
 * nameless.
 */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "below.h"
#include "core/base/file.h"
#include "core/base/walk.h"
#include "resolve.h"

int below_target_open(struct below_target *t, const char *path)
{
	struct spot at;

	*t = (struct below_target){.dir = -1, .fd = -1};
	if (resolve_spot(path, SPOT_FOLLOWED, &at) < 0)
		return -1;
	*t = (struct below_target){at.dir, at.name, -1, .is_open = at.magic};
	/* what a process has open, as /dev/stdout, is reached only by following its link of /proc */
	t->fd = openat(t->dir, t->name,
		       O_PATH | O_CLOEXEC | (t->is_open ? 0 : O_NOFOLLOW));
	if (t->fd < 0 && errno == ENOENT) {
		if (path[strlen(path) - 1] != '/')
			return 0;
		errno = EISDIR; /* no file can be made with this name */
	} else if (t->fd >= 0 && fstat(t->fd, &t->st) == 0) {
		if (!S_ISLNK(t->st.st_mode))
			return 0;
		errno = ELOOP; /* a link has taken the file's place meanwhile */
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

int below_target_reopen(const struct below_target *t, int flags)
{
	char proc[KP_FD_NAME_SIZE];

	return open(kp_fd_name(t->fd, proc), flags | O_CLOEXEC | O_NOCTTY);
}

int below_target_access(const struct below_target *t, int mode)
{
	char proc[KP_FD_NAME_SIZE];

	return faccessat(AT_FDCWD, kp_fd_name(t->fd, proc), mode, AT_EACCESS);
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
	return fstat(t->dir, &dir) == 0 && kp_only_root_writes(&dir);
}

kpack_error_t output_open(const char *path, bool *stream, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	struct below_target t;
	int fd;

	*stream = false;
	if (below_target_open(&t, path) < 0)
		return KPACK_SUCCESS; /* it is no device: what is wrong, is found later */
	*stream = t.fd >= 0 && (!S_ISREG(t.st.st_mode) || t.is_open);
	if (*stream && !below_target_trusted(&t)) {
		err = kp_fail(why, KPACK_ERROR_IO_ERROR,
			      "is not written to, because another user may have put it "
			      "there");
	} else if (*stream) {
		fd = below_target_reopen(&t, O_WRONLY | O_TRUNC);
		/* what was printed before belongs into the old standard output */
		fflush(stdout);
		if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
			err = kp_fail_errno(why, errno, "cannot open");
		kp_close_keeping_errno(fd);
	}
	below_target_close(&t);
	return err;
}

/* --- under a temporary name ------------------------------------------------------------ */

int place_outfile(const struct place *p, const struct kp_outfile *out)
{
	char proc[KP_FD_NAME_SIZE];

	if (out->tmp_name)
		return linkat(out->dir_fd, out->tmp_name, p->dir_fd, p->tmp_name, 0);
	return linkat(AT_FDCWD, kp_fd_name(out->fd, proc), p->dir_fd, p->tmp_name,
		      AT_SYMLINK_FOLLOW);
}

kpack_error_t place(const char *path, int (*make)(const struct place *p, void *arg),
		    void *arg, bool durable, struct kpackx_error *why)
{
	enum { TRIES = 100 }; /* if so many names exist, it is likely an attack */
	kpack_error_t err = KPACK_SUCCESS;
	struct below_dir dir;
	struct place p;
	int status = -1, sys_errno;

	/* rename replaces what has the name in one step, and needs both names in one directory */
	if (below_dir_open(&dir, path) < 0)
		return below_fail(why, "cannot open its directory");
	p = (struct place){.dir_fd = dir.fd, .name = dir.name};
	for (int i = 0; i < TRIES && status < 0 && kp_temp_name(p.tmp_name); i++) {
		status = make(&p, arg);
		if (status < 0 && errno != EEXIST)
			break;
	}
	if (status == 0) {
		status = renameat(p.dir_fd, p.tmp_name, p.dir_fd, p.name);
		sys_errno = errno;
		/* if both are names of one file, rename did nothing */
		unlinkat(p.dir_fd, p.tmp_name, 0);
		errno = sys_errno;
	}
	/* a copy that can be made again need not wait for the disk */
	if (status == 0 && durable)
		status = kp_flush_dir(p.dir_fd);
	if (status < 0)
		err = below_fail(why, "cannot make it");
	below_dir_close(&dir);
	return err;
}
