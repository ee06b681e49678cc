/* SPDX-License-Identifier: MIT */
#include "staging.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "below.h"
#include "core/base/file.h"
#include "packer/base/xalloc.h"
#include "journal.h"
#include "tree_list.h"

/* --- renaming ------------------------------------------------------------------------ */

/* Size of the old tree's new name, if trees cannot be exchanged atomically. */
#define ASIDE_MAX 280

/* Characters that make a staging directory's name unique. */
enum { RANDOM_DIGITS = 8 };

static void name_aside(const char *name, char out[ASIDE_MAX])
{
	snprintf(out, ASIDE_MAX, "%s.", name);
}

/* Exchange the tree with the one of that name, atomically if the file system can. */
static int swap_trees(int from, int to, const char *name)
{
	char aside[ASIDE_MAX];

	if (renameat2(from, name, to, name, RENAME_EXCHANGE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
		return -1;
	name_aside(name, aside);
	if (renameat(to, name, from, aside) < 0)
		return -1;
	if (renameat(from, name, to, name) == 0)
		return renameat(from, aside, from, name);
	renameat(from, aside, to, name);
	return -1;
}

static int rename_new(int from, int to, const char *name)
{
	if (renameat2(from, name, to, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	/* rename never replaces a directory that is not empty */
	return renameat(from, name, to, name);
}

/* A directory whose permissions are changed for a moment. */
struct lent {
	int fd; /* -1: unchanged */
	mode_t mode;
};

/* Make a directory writable, because only root can move one that is not. */
static struct lent make_writable(int dir, const char *name)
{
	struct lent lent = {
		.fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
	struct stat st;

	if (lent.fd < 0)
		return lent;
	if (fstat(lent.fd, &st) == 0 && !(st.st_mode & S_IWUSR) &&
	    fchmod(lent.fd, S_IRWXU) == 0) {
		lent.mode = st.st_mode & 07777;
		return lent;
	}
	close(lent.fd);
	return (struct lent){.fd = -1};
}

static void restore_mode(const struct lent *lent)
{
	if (lent->fd < 0)
		return;
	/* cannot fail in practice: the mode was changed a moment ago */
	if (fchmod(lent->fd, lent->mode) < 0)
		errno = 0;
	close(lent->fd);
}

static int exchange_trees(int from, int to, const char *name, bool swapped)
{
	struct lent here = make_writable(from, name), there = {.fd = -1};
	int status, error;

	if (swapped)
		there = make_writable(to, name);
	status = swapped ? swap_trees(from, to, name) : rename_new(from, to, name);
	error = errno;
	restore_mode(&here);
	restore_mode(&there);
	errno = error;
	return status;
}

/* --- recovery of unfinished sets ------------------------------------------------------ */

static bool is_there_at(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void recover_one(int from, int to, const struct journal_name *n)
{
	char old[ASIDE_MAX];

	if (journal_given(n, to))
		exchange_trees(to, from, n->name, is_there_at(from, n->name));
	name_aside(n->name, old);
	if (is_there_at(from, old) && !is_there_at(to, n->name))
		renameat(from, old, to, n->name);
}

/* If only some trees of a set got their names, take these names back. */
static void recover_trees(int from, int to)
{
	struct journal journal;
	size_t given = 0;

	if (!journal_read(&journal, from))
		return;
	for (size_t i = 0; i < journal.count; i++)
		given += journal_given(&journal.items[i], to);
	for (size_t i = journal.count; given < journal.count && i-- > 0;)
		recover_one(from, to, &journal.items[i]);
	journal_fini(&journal);
}

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
static bool is_own(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid();
}

/* Recover and remove the staging directory NAME, unless a running run has it locked. */
static void remove_if_left(const char *dir, int to, const char *name)
{
	char *path = xasprintf("%s/%s", dir, name);
	int fd = open_dir(path);

	if (fd >= 0 && is_own(fd) && lock_directory(fd, LOCK_EX | LOCK_NB) == 0) {
		recover_trees(fd, to);
		remove_tree(path);
	}
	if (fd >= 0)
		close(fd);
	free(path);
}

static void remove_left(const char *dir)
{
	size_t n = strlen(KP_TEMP_STAGING);
	DIR *d = below_opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strncmp(e->d_name, KP_TEMP_STAGING, n) == 0 &&
		    strlen(e->d_name) == n + RANDOM_DIGITS)
			remove_if_left(dir, dirfd(d), e->d_name);
	if (d)
		closedir(d);
}

/* --- beginning ----------------------------------------------------------------------- */

/* Check that the staging directory still exists: another run may have removed it as a
 * leftover before it was locked. */
static bool is_there(const struct staging *s)
{
	struct stat a, b;

	return fstat(s->fd, &a) == 0 && below_lstat(s->path, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Make a directory with a new name in DIR.  NULL and errno; the caller frees its path. */
static char *make_random(const char *dir)
{
	uint32_t random;

	do {
		char *path;

		if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
			return NULL;
		path = xasprintf("%s/" KP_TEMP_STAGING "%0*x", dir, RANDOM_DIGITS,
				 (unsigned)random);
		if (below_mkdir(path, 0700) == 0)
			return path;
		free(path);
	} while (errno == EEXIST);
	return NULL;
}

static kpack_error_t make_staging(struct staging *s, struct kpackx_error *why)
{
	do {
		if (s->fd >= 0)
			close(s->fd);
		free(s->path);
		s->fd = -1;
		s->path = make_random(s->dir);
		if (!s->path)
			return kp_fail_errno(why, errno,
					     "%s: cannot make a directory in it", s->dir);
		s->fd = open_dir(s->path);
		if (s->fd < 0 && errno != ENOENT)
			return kp_fail_errno(why, errno, "%s", s->path);
		if (s->fd >= 0) /* if the file system has no locks, go on without one */
			lock_directory(s->fd, LOCK_EX);
	} while (s->fd < 0 || !is_own(s->fd) || !is_there(s));
	return below_adopt_root(s->path, s->fd, why);
}

kpack_error_t staging_open(struct staging *s, const char *dir, struct kpackx_error *why)
{
	kpack_error_t err;

	*s = (struct staging){.dir = dir, .fd = -1};
	KP_TRY(below_make_root(dir, 0777, why));
	remove_left(dir);
	err = make_staging(s, why);
	if (err)
		staging_close(s);
	return err;
}

void staging_close(struct staging *s)
{
	if (s->path)
		remove_tree(s->path);
	if (s->fd >= 0)
		close(s->fd);
	free(s->path);
	*s = (struct staging){.fd = -1};
}

/* --- names --------------------------------------------------------------------------- */

static kpack_error_t open_parent(const struct staging *s, int *fd,
				 struct kpackx_error *why)
{
	*fd = below_open_following(s->dir, O_RDONLY | O_DIRECTORY);
	return *fd < 0 ? below_fail(why, s->dir) : KPACK_SUCCESS;
}

kpack_error_t staging_check(const struct staging *s, const char *name, bool replace,
			    struct kpackx_error *why)
{
	struct stat st;
	int fd;

	KP_TRY(open_parent(s, &fd, why));
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		close(fd);
		return KPACK_SUCCESS;
	}
	close(fd);
	if (!replace)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s/%s: already exists: --force replaces it", s->dir,
			       name);
	if (!S_ISDIR(st.st_mode))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s/%s: is not a directory; only directories are replaced",
			       s->dir, name);
	return KPACK_SUCCESS;
}

static int give_name(int from, int to, const char *name, bool replace, bool *swapped)
{
	struct stat st;

	*swapped = replace && fstatat(to, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	return exchange_trees(from, to, name, *swapped);
}

static void take_back(int from, int to, const char *const *names, const bool *swapped,
		      size_t n)
{
	while (n-- > 0)
		exchange_trees(to, from, names[n], swapped[n]);
}

static kpack_error_t give_names(const struct staging *s, int to, const char *const *names,
				size_t n, bool replace, struct kpackx_error *why)
{
	bool *swapped = xcalloc(n, sizeof(*swapped));
	kpack_error_t err = KPACK_SUCCESS;
	size_t i = 0;

	for (; i < n && !err; i++)
		if (give_name(s->fd, to, names[i], replace, &swapped[i]) < 0)
			err = kp_fail_errno(why, errno, "%s/%s: cannot rename the tree",
					    s->dir, names[i]);
	if (!err && kp_flush_dir(to))
		err = kp_fail_errno(why, errno, "%s: cannot flush", s->dir);
	else if (err)
		i--;
	if (err)
		take_back(s->fd, to, names, swapped, i);
	free(swapped);
	return err;
}

kpack_error_t staging_publish(struct staging *s, const char *const *names, size_t n,
			      bool replace, struct kpackx_error *why)
{
	kpack_error_t err;
	int to;

	KP_TRY(journal_write(s->fd, names, n, why));
	if (syncfs(s->fd) < 0)
		return kp_fail_errno(why, errno, "%s: cannot flush", s->path);
	KP_TRY(open_parent(s, &to, why));
	err = give_names(s, to, names, n, replace, why);
	close(to);
	return err;
}
