/* SPDX-License-Identifier: MIT */
#include "temp_dir.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "below.h"
#include "packer/cli/xalloc.h"
#include "tree_list.h"

/* Directories to make: if all of them are removed at once, it is likely an attack. */
#define TRIES 20

/* The attribute of a directory that this module made. */
#define MARK "trusted.kpack.temporary"

/* --- removing ------------------------------------------------------------------------ */

/* Remove a tree, also from read-only directories.  Files that cannot be removed stay. */
static void remove_tree(const char *path)
{
	struct tree_list *list = tree_list_open(path);
	struct tree_item item;

	while (tree_list_next(list, &item)) {
		if (item.kind == TREE_DIR && below_access(item.path, W_OK | X_OK) < 0)
			below_chmod(item.path, 0700);
		else if (item.kind == TREE_DIR_END ||
			 (item.kind == TREE_FAULT && S_ISDIR(item.st.st_mode)))
			below_rmdir(item.path);
		else if (item.kind != TREE_DIR)
			below_unlink(item.path);
	}
	tree_list_close(list);
}

static int lock_directory(int fd, int how)
{
	int status;

	while ((status = flock(fd, how)) < 0 && errno == EINTR)
		;
	return status;
}

static int open_dir(const char *path)
{
	return below_open(path, O_RDONLY | O_DIRECTORY, 0);
}

/* Whether the user owns FD: other users' are neither trusted nor removed. */
static bool is_own(int fd, struct stat *st)
{
	return fstat(fd, st) == 0 && st->st_uid == geteuid();
}

/*
 * Whether a run of the same user made FD in BASE.  Where other users can rename things,
 * they can give the name to another directory of root's; only root can set the mark.
 */
static bool is_left(int fd, int base)
{
	struct stat st, dir;

	if (!is_own(fd, &st) || fstat(base, &dir) < 0)
		return false;
	return geteuid() != 0 ||
	       (dir.st_uid == 0 && !(dir.st_mode & (S_IWGRP | S_IWOTH))) ||
	       fgetxattr(fd, MARK, NULL, 0) >= 0;
}

static void remove_if_left(const char *path, int base, void (*recover)(int dir, int base))
{
	int fd = open_dir(path);

	/* from here on PATH is this directory, whatever gets the name */
	if (fd >= 0 && is_left(fd, base) && lock_directory(fd, LOCK_EX | LOCK_NB) == 0 &&
	    below_adopt_root(path, fd, NULL) == KPACK_SUCCESS) {
		if (recover)
			recover(fd, base);
		remove_tree(path);
	}
	if (fd >= 0)
		close(fd);
}

void temp_dir_remove_left(const char *base, const char *prefix,
			  void (*recover)(int dir, int base))
{
	int fd = below_open_following(base, O_RDONLY | O_DIRECTORY);
	size_t n = strlen(prefix);
	struct dirent **names;
	int count = below_scandir(base, &names, NULL);

	for (int i = 0; i < count; i++) {
		char *path = xasprintf("%s/%s", base, names[i]->d_name);

		if (fd >= 0 && strncmp(names[i]->d_name, prefix, n) == 0 &&
		    strlen(names[i]->d_name) == n + BELOW_RANDOM_SIZE)
			remove_if_left(path, fd, recover);
		free(path);
		free(names[i]);
	}
	if (count >= 0)
		free(names);
	if (fd >= 0)
		close(fd);
}

/* --- making -------------------------------------------------------------------------- */

/* Whether PATH still is the directory FD: another run may have removed it as a leftover
 * before it was locked. */
static bool is_there(const char *path, int fd)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && below_lstat(path, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Make a directory with a new name in BASE.  NULL and errno; the caller frees its path. */
static char *make_random(const char *base, const char *prefix)
{
	char random[BELOW_RANDOM_SIZE + 1];

	while (below_random(random)) {
		char *path = xasprintf("%s/%s%s", base, prefix, random);

		if (below_mkdir(path, 0700) == 0)
			return path;
		free(path);
		if (errno != EEXIST)
			break;
	}
	return NULL;
}

/* Make and lock one.  false: it is gone, or another directory has its name. */
static bool make_locked(struct temp_dir *t, const char *base, const char *prefix,
			kpack_error_t *err, struct kpackx_error *why)
{
	struct stat st;

	*err = KPACK_SUCCESS;
	t->path = make_random(base, prefix);
	if (!t->path) {
		*err = below_fail(why, "%s: cannot make a directory in it", base);
		return true;
	}
	t->fd = open_dir(t->path);
	/* nobody else has a new directory locked; where there are no locks, go on without */
	return t->fd >= 0 && is_own(t->fd, &st) &&
	       (lock_directory(t->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) &&
	       is_there(t->path, t->fd);
}

kpack_error_t temp_dir_open(struct temp_dir *t, const char *base, const char *prefix,
			    struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	int tries = 0;

	*t = (struct temp_dir){.fd = -1};
	while (!make_locked(t, base, prefix, &err, why)) {
		/* what has the name now is not ours to remove */
		if (t->fd >= 0)
			close(t->fd);
		free(t->path);
		*t = (struct temp_dir){.fd = -1};
		if (++tries == TRIES)
			return kp_fail(
				why, KPACK_ERROR_IO_ERROR,
				"%s: every directory made in it is removed at once",
				base);
	}
	/* only root can, and not in each file system: else it stays where other users write */
	if (!err && fsetxattr(t->fd, MARK, "", 0, 0) < 0)
		errno = 0;
	if (!err)
		err = below_adopt_root(t->path, t->fd, why);
	if (err)
		temp_dir_close(t);
	return err;
}

void temp_dir_close(struct temp_dir *t)
{
	if (t->path)
		remove_tree(t->path);
	if (t->fd >= 0)
		close(t->fd);
	free(t->path);
	*t = (struct temp_dir){.fd = -1};
}
