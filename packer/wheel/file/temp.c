/* SPDX-License-Identifier: MIT */
#include "temp.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/base/file.h"
#include "packer/base/xalloc.h"

/* Limit of descriptors that nftw holds. */
#define WALK_FDS 32

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)at;
	if (type == FTW_DP)
		rmdir(path);
	else
		unlink(path);
	return 0;
}

/* Ours are always writable: directories of wheels are unpacked with mode 0777. */
static void remove_tree(const char *path)
{
	nftw(path, remove_one, WALK_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Lock a directory.  -1: another run has locked it, or it is not a directory of ours. */
static int lock_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	    flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static void remove_left(const char *base, const char *name)
{
	char *path = xasprintf("%s/%s", base, name);
	int fd = lock_directory(path);

	if (fd >= 0) {
		remove_tree(path);
		close(fd);
	}
	free(path);
}

static void remove_all_left(const char *base)
{
	DIR *dir = opendir(base);
	const struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (strncmp(e->d_name, KP_TEMP_WHEEL, strlen(KP_TEMP_WHEEL)) == 0)
			remove_left(base, e->d_name);
	if (dir)
		closedir(dir);
}

/*
 * Between our mkdtemp and flock another run may have removed the directory as a leftover:
 * then the locked directory no longer has a name.
 */
static bool is_ours(const struct wheel_temp *t)
{
	struct stat named, held;

	return t->lock >= 0 && stat(t->path, &named) == 0 && fstat(t->lock, &held) == 0 &&
	       named.st_ino == held.st_ino && named.st_dev == held.st_dev;
}

static kpack_error_t make_directory(const char *base, struct wheel_temp *out,
				    struct kpackx_error *why)
{
	out->path = xasprintf("%s/" KP_TEMP_WHEEL "XXXXXX", base);
	if (!mkdtemp(out->path)) {
		int error = errno;

		free(out->path);
		out->path = NULL;
		return kp_fail_errno(why, error, "%s: cannot make a directory", base);
	}
	out->lock = lock_directory(out->path);
	return KPACK_SUCCESS;
}

kpack_error_t wheel_temp_open(const char *base, struct wheel_temp *out,
			      struct kpackx_error *why)
{
	*out = (struct wheel_temp){.lock = -1};
	remove_all_left(base);
	for (int tries = 0; tries < 10; tries++) {
		KP_TRY(make_directory(base, out, why));
		if (is_ours(out))
			return KPACK_SUCCESS;
		wheel_temp_close(out);
	}
	return kp_fail(why, KPACK_ERROR_IO_ERROR, "%s: cannot keep a temporary directory",
		       base);
}

kpack_error_t wheel_temp_dir(const struct wheel_temp *t, const char *name, char **out,
			     struct kpackx_error *why)
{
	*out = xasprintf("%s/%s", t->path, name);
	if (mkdir(*out, 0777) == 0)
		return KPACK_SUCCESS;
	return kp_fail_errno(why, errno, "%s: cannot make the directory", *out);
}

void wheel_temp_close(struct wheel_temp *t)
{
	if (t->path) {
		remove_tree(t->path);
		if (t->lock >= 0)
			close(t->lock);
	}
	free(t->path);
	*t = (struct wheel_temp){.lock = -1};
}
