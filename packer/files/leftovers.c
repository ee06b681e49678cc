/* SPDX-License-Identifier: MIT */
#include "leftovers.h"
#include "below.h"
#include "core/base/file.h"
#include "core/base/path_step.h"
#include "packer/cli/xalloc.h"
#include "lock.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

kpack_error_t leftovers_lock(const char *root, int *lock, struct kpackx_error *why)
{
	int fd = below_open_following(root, O_RDONLY | O_DIRECTORY);
	kpack_error_t err;
	bool locked = false;

	*lock = -1;
	if (fd < 0)
		return kp_fail_prefix(why, below_fail(why, "cannot open the directory"),
				      "%s", root);
	err = lock_wait(fd, root, &locked, why);
	if (locked)
		*lock = fd;
	else
		lock_close(fd);
	return err;
}

static int remove_one(int dir, const char *name)
{
	struct stat st;

	if (!kp_is_temp_name(name))
		return 0;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -1;
	if (S_ISDIR(st.st_mode))
		return 0;
	return unlinkat(dir, name, 0);
}

static kpack_error_t remove_all(const char *dir, struct kpackx_error *why)
{
	int fd = below_open(dir, O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	int failed = 0;

	if (!d) {
		kpack_error_t err = below_fail(why, "%s: cannot open the directory", dir);

		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!failed && (errno = 0, e = readdir(d)))
		if (e->d_name[0] == '.' && remove_one(dirfd(d), e->d_name) < 0)
			failed = errno;
	failed = failed ? failed : errno;
	closedir(d);
	errno = failed;
	return failed ? below_fail(why, "%s: cannot be tidied", dir) : KPACK_SUCCESS;
}

kpack_error_t leftovers_remove(const char *root, const char *path,
			       struct kpackx_error *why)
{
	char *dir = xasprintf("%s/%s", root, path);
	kpack_error_t err = remove_all(dir, why);

	free(dir);
	return err;
}
