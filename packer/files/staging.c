/* SPDX-License-Identifier: MIT */
/*
 * Trees that appear together, and directories that runs share.
 *
 * A temporary directory is locked while its run lives.  The next run of the same user in the
 * same place removes those that nobody has locked.  A staging directory is one in which trees
 * are made; a journal in it lists their names before the first one is given, with what tells
 * each tree from any other: a run that was killed between two renames has given some names and
 * not others, and the next run takes them back by the journal.
 */
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
#include <sys/xattr.h>
#include <unistd.h>

#include "below.h"
#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/base/walk.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "tree_list.h"

/* --- locks ----------------------------------------------------------------------------- */

static int flock_again(int fd, int how)
{
	int status;

	do
		status = flock(fd, how);
	while (status < 0 && errno == EINTR);
	return status;
}

bool lock_wait(int fd, const char *path)
{
	int status = flock_again(fd, LOCK_EX | LOCK_NB);

	if (status < 0 && errno == EWOULDBLOCK) {
		report_error(path, "note: another process has locked it: waiting "
				   "(lslocks(8) names it)");
		status = flock_again(fd, LOCK_EX);
	}
	return status == 0;
}

void lock_close(int fd)
{
	if (fd < 0)
		return;
	flock(fd, LOCK_UN); /* a duplicate of the descriptor may stay open */
	close(fd);
}

/* --- files that killed runs left in a tree --------------------------------------------- */

kpack_error_t leftovers_lock(const char *root, int *lock, struct kpackx_error *why)
{
	int fd = below_open_following(root, O_RDONLY | O_DIRECTORY);

	*lock = -1;
	if (fd < 0)
		return kp_fail_prefix(why, below_fail(why, "cannot open the directory"),
				      "%s", root);
	if (lock_wait(fd, root))
		*lock = fd;
	else
		lock_close(fd);
	return KPACK_SUCCESS;
}

kpack_error_t leftovers_remove(const char *root, const char *path,
			       struct kpackx_error *why)
{
	KP_AUTO_FREE char *dir = xasprintf("%s/%s", root, path);
	int fd = below_open(dir, O_RDONLY | O_DIRECTORY, 0), failed = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	struct stat st;

	if (!d) {
		kpack_error_t err = below_fail(why, "%s: cannot open the directory", dir);

		kp_close_keeping_errno(fd);
		return err;
	}
	while (!failed && (errno = 0, e = readdir(d))) {
		if (!kp_is_temp_name(e->d_name))
			continue;
		if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			failed = errno == ENOENT ? 0 : errno;
		else if (!S_ISDIR(st.st_mode) && unlinkat(fd, e->d_name, 0) < 0)
			failed = errno;
	}
	failed = failed ? failed : errno;
	closedir(d);
	errno = failed;
	return failed ? below_fail(why, "%s: cannot be tidied", dir) : KPACK_SUCCESS;
}

/* --- temporary directories ------------------------------------------------------------- */

/* The attribute of a directory of root's that this file made: only root can set it. */
#define MARK "trusted.kpack.temporary"

/* Random letters and digits at the end of its name. */
enum { RANDOM_SIZE = 6 };

int remove_tree(const char *path)
{
	struct tree_list *list = tree_list_open(path);
	struct tree_item item;
	int first = 0;

	/* a directory that cannot be written or entered was made so by what was copied into it */
	while (tree_list_next(list, &item)) {
		int status = 0;

		errno = item.kind == TREE_FAULT ? item.error : 0;
		first = first ? first : errno;
		if (item.kind == TREE_DIR && below_access(item.path, W_OK | X_OK) < 0)
			status = below_chmod(item.path, 0700);
		else if (item.kind == TREE_DIR_END ||
			 (item.kind == TREE_FAULT && S_ISDIR(item.st.st_mode)))
			status = below_rmdir(item.path);
		else if (item.kind != TREE_DIR)
			status = below_unlink(item.path);
		if (status < 0 && !first)
			first = errno;
	}
	tree_list_close(list);
	return first;
}

void temp_dir_remove_left(const char *base, const char *prefix,
			  void (*recover)(int dir, int base))
{
	KP_AUTO_CLOSE int base_fd = below_open_following(base, O_RDONLY | O_DIRECTORY);
	size_t n = strlen(prefix);
	struct dirent **names = NULL;
	struct stat st;
	int count = base_fd < 0 || fstat(base_fd, &st) < 0
			    ? 0
			    : below_scandir(base, &names, NULL);
	/*
	 * Where other users can rename things, they can give such a name to another directory
	 * of root's, which has no mark.
	 */
	bool safe = count > 0 && kp_only_root_writes(&st);

	for (int i = 0; i < count; i++) {
		KP_AUTO_FREE char *name = (char *)names[i];
		KP_AUTO_FREE char *path = xasprintf("%s/%s", base, names[i]->d_name);
		KP_AUTO_CLOSE int fd = -1;

		if (strncmp(names[i]->d_name, prefix, n) != 0 ||
		    strlen(names[i]->d_name) != n + RANDOM_SIZE)
			continue;
		fd = below_open(path, O_RDONLY | O_DIRECTORY, 0);
		if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() ||
		    (geteuid() == 0 && !safe && fgetxattr(fd, MARK, NULL, 0) < 0) ||
		    flock_again(fd, LOCK_EX | LOCK_NB) < 0 ||
		    below_adopt_root(path, fd, NULL) != KPACK_SUCCESS)
			continue;
		/* from here on PATH is this directory, whatever gets the name */
		if (recover)
			recover(fd, base_fd);
		remove_tree(path);
	}
	free(names);
}

kpack_error_t temp_dir_open(struct temp_dir *t, const char *base, const char *prefix,
			    struct kpackx_error *why)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	enum { TRIES = 20 }; /* if so many are removed at once, it is likely an attack */
	kpack_error_t err;

	*t = (struct temp_dir){.fd = -1};
	for (int i = 0; i < TRIES; i++) {
		char random[RANDOM_SIZE + 1] = "";
		struct stat st, named;
		int made = -1;

		/* some letters come more often: a name need not be secret, only new */
		if (getrandom(random, RANDOM_SIZE, 0) == RANDOM_SIZE) {
			for (size_t k = 0; k < RANDOM_SIZE; k++)
				random[k] = letters[(uint8_t)random[k] % strlen(letters)];
			t->path = xasprintf("%s/%s%s", base, prefix, random);
			made = below_mkdir(t->path, 0700);
		}
		if (made < 0 && errno != EEXIST) {
			err = below_fail(why, "%s: cannot make a directory in it", base);
			free(t->path);
			t->path = NULL;
			return err;
		}
		if (made == 0)
			t->fd = below_open(t->path, O_RDONLY | O_DIRECTORY, 0);
		/*
		 * Nobody else has a new directory locked, and where there are no locks, go on
		 * without.  But another run may have removed it as a leftover before.
		 */
		if (t->fd >= 0 && fstat(t->fd, &st) == 0 && st.st_uid == geteuid() &&
		    (flock_again(t->fd, LOCK_EX | LOCK_NB) == 0 ||
		     errno != EWOULDBLOCK) &&
		    below_lstat(t->path, &named) == 0 && st.st_dev == named.st_dev &&
		    st.st_ino == named.st_ino) {
			/* not each file system has it: then what is left stays there */
			fsetxattr(t->fd, MARK, "", 0, 0);
			err = below_adopt_root(t->path, t->fd, why);
			if (err)
				temp_dir_close(t);
			return err;
		}
		/* what has the name now is not ours to remove */
		kp_close_keeping_errno(t->fd);
		free(t->path);
		*t = (struct temp_dir){.fd = -1};
	}
	return kp_fail(why, KPACK_ERROR_IO_ERROR,
		       "%s: every directory made in it is removed at once", base);
}

void temp_dir_close(struct temp_dir *t)
{
	if (t->path)
		remove_tree(t->path);
	kp_close_keeping_errno(t->fd);
	free(t->path);
	*t = (struct temp_dir){.fd = -1};
}

/* --- the journal ------------------------------------------------------------------------ */

/*
 * The file begins with the number of names, 8 bytes; then come for each the identity of its
 * tree, and the name with its NUL.
 */
#define NAMES_MAX 65536 /* no run makes more */
#define SIZE_LIMIT ((off_t)(NAMES_MAX * (256 + sizeof(struct tree_identity))))

static bool identify_tree(int dir, const char *name, struct tree_identity *out)
{
	struct statx st;

	if (statx(dir, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_INO | STATX_BTIME,
		  &st) < 0 ||
	    !S_ISDIR(st.stx_mode))
		return false;
	*out = (struct tree_identity){.ino = st.stx_ino};
	if (st.stx_mask & STATX_BTIME) {
		out->born = st.stx_btime.tv_sec;
		out->born_ns = st.stx_btime.tv_nsec;
	}
	return true;
}

bool journal_given(const struct journal_name *name, int to)
{
	struct tree_identity there;

	return identify_tree(to, name->name, &there) &&
	       memcmp(&there, &name->tree, sizeof(there)) == 0;
}

static FILE *open_journal(int dir, int flags, const char *mode)
{
	int fd = openat(dir, JOURNAL_NAME, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *file = fd >= 0 ? fdopen(fd, mode) : NULL;

	if (!file)
		kp_close_keeping_errno(fd);
	return file;
}

/* Write the journal of the N trees NAMES into the directory DIR, which holds them. */
static kpack_error_t journal_write(int dir, const char *const *names, size_t n,
				   struct kpackx_error *why)
{
	FILE *to = open_journal(dir, O_WRONLY | O_CREAT | O_EXCL, "w");
	uint64_t count = n;
	bool ok = to && fwrite(&count, sizeof(count), 1, to) == 1;

	for (size_t i = 0; i < n && ok; i++) {
		struct tree_identity id;

		ok = identify_tree(dir, names[i], &id) &&
		     fwrite(&id, sizeof(id), 1, to) == 1 &&
		     fwrite(names[i], strlen(names[i]) + 1, 1, to) == 1;
	}
	if (to && fclose(to) != 0)
		ok = false;
	return ok ? KPACK_SUCCESS
		  : kp_fail_errno(why, errno, "cannot write the names of the trees");
}

bool journal_read(struct journal *out, int dir)
{
	FILE *from = open_journal(dir, O_RDONLY | O_NONBLOCK, "r");
	uint64_t count = 0;
	struct stat st;
	bool ok;

	*out = (struct journal){0};
	if (!from)
		return false;
	/* where others may write, the file can be anything: only our own of a possible size is read */
	ok = fstat(fileno(from), &st) == 0 && S_ISREG(st.st_mode) &&
	     st.st_uid == geteuid() && st.st_size <= SIZE_LIMIT &&
	     fread(&count, sizeof(count), 1, from) == 1 && count <= NAMES_MAX;
	out->items = ok ? calloc(count + 1, sizeof(*out->items)) : NULL;
	ok = out->items != NULL;
	while (ok && out->count < count) {
		struct journal_name *name = &out->items[out->count++];
		size_t room = 0;
		ssize_t size = -1;

		if (fread(&name->tree, sizeof(name->tree), 1, from) == 1)
			size = getdelim(&name->name, &room, '\0', from);
		ok = size > 0 && !name->name[size - 1] &&
		     kp_component_ok(kp_span_str(name->name));
	}
	fclose(from);
	if (!ok)
		journal_fini(out);
	return ok;
}

void journal_fini(struct journal *journal)
{
	for (size_t i = 0; i < journal->count; i++)
		free(journal->items[i].name);
	free(journal->items);
	*journal = (struct journal){0};
}

/* --- trees get their names --------------------------------------------------------------- */

static bool is_there_at(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* What a tree is called while two trees cannot be exchanged atomically. */
static const char *name_aside(const char *name, char out[NAME_MAX + 2])
{
	snprintf(out, NAME_MAX + 2, "%s.", name);
	return out;
}

/*
 * Move the tree NAME from the directory FROM to TO; SWAP: and the one of that name there back,
 * atomically if the file system can.
 */
static int move_tree(int from, int to, const char *name, bool swap)
{
	char aside[NAME_MAX + 2];

	if (renameat2(from, name, to, name, swap ? RENAME_EXCHANGE : RENAME_NOREPLACE) ==
	    0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
		return -1;
	if (!swap) /* rename never replaces a directory that is not empty */
		return renameat(from, name, to, name);
	name_aside(name, aside);
	if (renameat(to, name, from, aside) < 0)
		return -1;
	if (renameat(from, name, to, name) == 0)
		return renameat(from, aside, from, name);
	renameat(from, aside, to, name);
	return -1;
}

/*
 * As move_tree, also of trees that their owner may not write, which only root can move: they are
 * made writable meanwhile.
 */
static int exchange_trees(int from, int to, const char *name, bool swap)
{
	int dirs[2] = {from, swap ? to : -1}, lent[2] = {-1, -1}, status, error;
	mode_t modes[2];
	struct stat st;

	for (int i = 0; i < 2 && geteuid() != 0; i++) {
		int fd =
			dirs[i] < 0
				? -1
				: openat(dirs[i], name,
					 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (fd >= 0 && fstat(fd, &st) == 0 && !(st.st_mode & S_IWUSR) &&
		    fchmod(fd, S_IRWXU) == 0) {
			modes[i] = st.st_mode & 07777;
			lent[i] = fd;
		} else {
			kp_close_keeping_errno(fd);
		}
	}
	status = move_tree(from, to, name, swap);
	error = errno;
	for (int i = 0; i < 2; i++) {
		/* cannot fail in practice: the mode was changed a moment ago */
		if (lent[i] >= 0 && fchmod(lent[i], modes[i]) < 0)
			errno = 0;
		kp_close_keeping_errno(lent[i]);
	}
	errno = error;
	return status;
}

/* If only some trees of a set in FROM got their names in TO, take these names back. */
static void recover_trees(int from, int to)
{
	struct journal journal;
	char aside[NAME_MAX + 2];
	size_t given = 0;

	if (!journal_read(&journal, from))
		return;
	for (size_t i = 0; i < journal.count; i++)
		given += journal_given(&journal.items[i], to);
	for (size_t i = journal.count; given < journal.count && i-- > 0;) {
		const struct journal_name *n = &journal.items[i];

		if (journal_given(n, to))
			exchange_trees(to, from, n->name, is_there_at(from, n->name));
		name_aside(n->name, aside);
		if (is_there_at(from, aside) && !is_there_at(to, n->name))
			renameat(from, aside, to, n->name);
	}
	journal_fini(&journal);
}

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

kpack_error_t staging_check(const struct staging *s, const char *name, bool replace,
			    struct kpackx_error *why)
{
	KP_AUTO_CLOSE int fd = below_open_following(s->dir, O_RDONLY | O_DIRECTORY);
	struct stat st;

	if (fd < 0)
		return below_fail(why, "%s", s->dir);
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
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

kpack_error_t staging_publish(struct staging *s, const char *const *names, size_t n,
			      bool replace, struct kpackx_error *why)
{
	KP_AUTO_FREE bool *swapped = xcalloc(n, sizeof(*swapped));
	KP_AUTO_CLOSE int to = -1;
	kpack_error_t err = KPACK_SUCCESS;
	size_t given = 0;

	/* the journal, and the trees, must be on the disk before the first name is given */
	KP_TRY(journal_write(s->fd, names, n, why));
	if (syncfs(s->fd) < 0)
		return kp_fail_errno(why, errno, "%s: cannot flush", s->path);
	to = below_open_following(s->dir, O_RDONLY | O_DIRECTORY);
	if (to < 0)
		return below_fail(why, "%s", s->dir);
	for (; given < n && !err; given += !err) {
		swapped[given] = replace && is_there_at(to, names[given]);
		if (exchange_trees(s->fd, to, names[given], swapped[given]) < 0)
			err = kp_fail_errno(why, errno, "%s/%s: cannot rename the tree",
					    s->dir, names[given]);
	}
	if (!err && kp_flush_dir(to))
		err = kp_fail_errno(why, errno, "%s: cannot flush", s->dir);
	while (err && given-- > 0)
		exchange_trees(to, s->fd, names[given], swapped[given]);
	return err;
}
