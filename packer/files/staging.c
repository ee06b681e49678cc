/* SPDX-License-Identifier: MIT */
#include "staging.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "below.h"
#include "core/base/file.h"
#include "core/base/path_step.h"
#include "packer/cli/xalloc.h"
#include "journal.h"
#include "temp_dir.h"

/* --- renaming ------------------------------------------------------------------------ */

/* Size of the old tree's new name, if trees cannot be exchanged atomically. */
#define ASIDE_MAX 280

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
	struct lent lent = {.fd = -1};
	struct stat st;

	if (geteuid() == 0)
		return lent;
	lent = (struct lent){
		.fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
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

/* --- beginning ----------------------------------------------------------------------- */

kpack_error_t staging_open(struct staging *s, const char *dir, struct kpackx_error *why)
{
	struct temp_dir t;

	*s = (struct staging){.dir = dir, .fd = -1};
	KP_TRY(below_make_root(dir, 0777, why));
	temp_dir_remove_left(dir, KP_TEMP_STAGING, recover_trees);
	KP_TRY(temp_dir_open(&t, dir, KP_TEMP_STAGING, why));
	s->path = t.path;
	s->fd = t.fd;
	return KPACK_SUCCESS;
}

void staging_close(struct staging *s)
{
	temp_dir_close(&(struct temp_dir){s->path, s->fd});
	*s = (struct staging){.fd = -1};
}

/* --- names --------------------------------------------------------------------------- */

static kpack_error_t open_parent(const struct staging *s, int *fd,
				 struct kpackx_error *why)
{
	*fd = below_open_following(s->dir, O_RDONLY | O_DIRECTORY);
	return *fd < 0 ? below_fail(why, "%s", s->dir) : KPACK_SUCCESS;
}

kpack_error_t staging_check(const struct staging *s, const char *name, bool replace,
			    struct kpackx_error *why)
{
	struct stat st;
	int fd, status;

	KP_TRY(open_parent(s, &fd, why));
	status = fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW);
	close(fd);
	if (status < 0)
		return KPACK_SUCCESS;
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
