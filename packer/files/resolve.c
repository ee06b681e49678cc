/* SPDX-License-Identifier: MIT */
/*
 * How paths are resolved.  Below a root the kernel resolves a path at once, and refuses every
 * link.  An operand is walked by single components, because root follows a link only where no
 * other user could have put another one.
 */
#include "resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "below.h"
#include "core/base/alloc.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"

/* Directories are passed through without the right to list them. */
#define PASS_THROUGH (O_PATH | O_DIRECTORY | O_CLOEXEC)

/* As the kernel: so many links in one path are a circle. */
#define MAX_LINKS 40

/* --- roots --------------------------------------------------------------------------- */

struct root {
	char *path; /* without slashes at its end */
	int fd;
	bool removed;
};

/* Never shrinks: a descriptor that was found stays open. */
static struct {
	pthread_mutex_t lock; /* guards everything below */
	struct root *items;
	size_t count, cap;
} roots = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What PATH is below ROOT ("": the root itself); NULL: it is not. */
static const char *rest_below(const struct root *root, const char *path)
{
	size_t length = strlen(root->path);

	if (strncmp(path, root->path, length) != 0 ||
	    (path[length] && path[length] != '/'))
		return NULL;
	return path + length + strspn(path + length, "/");
}

/*
 * Find the innermost root of PATH, of equals the last that was added; if PROPER, not PATH
 * itself.  -1: PATH is an operand.
 */
static int find_root_of(const char *path, bool proper, const char **rest)
{
	int fd = -1;
	size_t best = 0;

	pthread_mutex_lock(&roots.lock);
	for (size_t i = 0; i < roots.count; i++) {
		const char *below = rest_below(&roots.items[i], path);
		size_t length = strlen(roots.items[i].path);

		if (below && (*below || !proper) && !roots.items[i].removed &&
		    (fd < 0 || length >= best)) {
			fd = roots.items[i].fd;
			best = length;
			*rest = below;
		}
	}
	pthread_mutex_unlock(&roots.lock);
	return fd;
}

int resolve_root(const char *path, const char **rest)
{
	return find_root_of(path, false, rest);
}

/* Take over FD as the root PATH. */
static void add_root(const char *path, int fd)
{
	size_t length = strlen(path);

	while (length && path[length - 1] == '/')
		length--;
	pthread_mutex_lock(&roots.lock);
	xgrow(&roots.items, roots.count, &roots.cap, sizeof(*roots.items));
	roots.items[roots.count++] = (struct root){xstrndup(path, length), fd, false};
	pthread_mutex_unlock(&roots.lock);
}

/* --- resolving ----------------------------------------------------------------------- */

/*
 * Take the next component from *REST into NAME; components "." are left out.  false: none
 * is left, or it is too long, with errno.
 */
static bool next_component(const char **rest, char name[NAME_MAX + 1])
{
	size_t length;

	errno = 0;
	do {
		*rest += strspn(*rest, "/");
		length = strcspn(*rest, "/");
		if (length > NAME_MAX) {
			errno = ENAMETOOLONG;
			return false;
		}
		memcpy(name, *rest, length);
		name[length] = '\0';
		*rest += length;
	} while (strcmp(name, ".") == 0);
	return length > 0;
}

/*
 * Open REST ("": the root itself) below the root FD; no link is followed, but a link itself can
 * be opened with O_PATH and O_NOFOLLOW.
 */
static int open_below(int fd, const char *rest, int flags, mode_t mode)
{
	struct open_how how = {.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
	int dir = -1, opened;
	char part[PATH_MAX];

	/* the kernel takes no longer path at once: go down by parts of it */
	while (strlen(rest) >= PATH_MAX) {
		const char *slash = memrchr(rest, '/', PATH_MAX - 1);

		if (!slash) {
			errno = ENAMETOOLONG;
			opened = -1;
		} else {
			memcpy(part, rest, (size_t)(slash - rest));
			part[slash - rest] = '\0';
			rest = slash + 1;
			opened = open_below(dir < 0 ? fd : dir, part, PASS_THROUGH, 0);
		}
		kp_close_keeping_errno(dir);
		if (opened < 0)
			return -1;
		dir = opened;
	}
	/* openat2 refuses what O_PATH ignores */
	how.flags = (unsigned)flags & ~(flags & O_PATH ? O_NOCTTY | O_NONBLOCK : 0);
	how.mode = flags & (O_CREAT | __O_TMPFILE) ? mode : 0;
	do
		opened = (int)syscall(SYS_openat2, dir < 0 ? fd : dir, *rest ? rest : ".",
				      &how, sizeof(how));
	while (opened < 0 && errno == EINTR);
	kp_close_keeping_errno(dir);
	return opened;
}

/*
 * Whether root may follow a link in the directory DIR: nobody else can put another link
 * there.  In a sticky directory the link's owner alone can.
 */
static bool may_follow(int dir, const struct stat *link)
{
	struct stat st;

	if (geteuid() != 0)
		return true;
	if (fstat(dir, &st) < 0 || st.st_uid != 0)
		return false;
	return !(st.st_mode & (S_IWGRP | S_IWOTH)) ||
	       ((st.st_mode & S_ISVTX) && link->st_uid == 0);
}

/* The state of resolving an operand. */
struct walk {
	int dir;       /* the directory reached so far */
	char *pending; /* components still to take; owned */
	const char *rest;
	int links;
};

/*
 * Take the component NAME, which is the LAST or not; a link is followed, with its text before what
 * is left.  Returns 1 if it is the last one and no link, 0 to go on, -1 and errno.  MAGIC becomes
 * true for a last link of /proc, which only the kernel can follow.
 */
static int take_component(struct walk *w, const char *name, bool last, bool *magic)
{
	int next = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st = {.st_mode = 0};
	char text[PATH_MAX], *pending;
	struct statfs fs;
	ssize_t size;

	if (next < 0)
		return last && errno == ENOENT ? 1 : -1;
	if (fstat(next, &st) == 0 && S_ISLNK(st.st_mode) &&
	    !(fstatfs(next, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC)) {
		size = -1;
		if (!may_follow(w->dir, &st) || ++w->links > MAX_LINKS)
			errno = ELOOP;
		else
			size = readlinkat(next, "", text, sizeof(text) - 1);
		kp_close_keeping_errno(next);
		if (size < 0)
			return -1;
		text[size] = '\0';
		if (*text == '/') {
			close(w->dir);
			w->dir = open("/", PASS_THROUGH);
		}
		pending = xasprintf("%s/%s", text, w->rest);
		free(w->pending);
		w->rest = w->pending = pending;
		return w->dir < 0 ? -1 : 0;
	}
	if (S_ISLNK(st.st_mode)) {
		*magic = last;
		close(next);
		if (last)
			return 1;
		next = openat(w->dir, name, PASS_THROUGH);
		if (next < 0)
			return -1;
	}
	if (last && strcmp(name, "..") != 0) {
		close(next);
		return 1;
	}
	close(w->dir);
	w->dir = next;
	return 0;
}

/*
 * Resolve PATH, which begins in the directory START, by the rules for operands.  FOLLOW:
 * its last component too.  The last component need not exist.
 */
static int resolve_operand(int start, const char *path, bool follow, struct spot *at)
{
	struct walk w = {.dir = openat(start, *path == '/' ? "/" : ".", PASS_THROUGH)};
	char name[NAME_MAX + 1];
	size_t n = strlen(path);
	int status = 0;
	struct stat st;

	*at = (struct spot){.dir = -1};
	w.rest = w.pending = xstrdup(path);
	while (w.dir >= 0 && status == 0 && next_component(&w.rest, name)) {
		bool last = !w.rest[strspn(w.rest, "/")];

		status = last && !follow && strcmp(name, "..") != 0
				 ? 1
				 : take_component(&w, name, last, &at->magic);
	}
	if (status == 0 && errno)
		status = -1;
	/* with "/" or "/." at its end PATH can only be a directory, or a link to one */
	if (n > 1 && path[n - 1] == '.')
		n--;
	if (status == 1 && n && path[n - 1] == '/' &&
	    fstatat(w.dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode) &&
	    !S_ISLNK(st.st_mode)) {
		errno = ENOTDIR;
		status = -1;
	}
	if (status < 0)
		kp_close_keeping_errno(w.dir);
	else if (w.dir >= 0)
		*at = (struct spot){w.dir, xstrdup(status ? name : "."), at->magic};
	free(w.pending);
	return at->dir < 0 ? -1 : 0;
}

/*
 * Take the components "." and ".." out of REST, which has no links.  NULL: it leads above
 * where it begins.
 */
static char *normalise_path(const char *rest)
{
	char *out, name[NAME_MAX + 1];
	size_t n = 0;

	out = xmalloc(strlen(rest) + 2);
	while (next_component(&rest, name)) {
		if (strcmp(name, "..") == 0) {
			if (n == 0) {
				free(out);
				return NULL;
			}
			while (n && out[--n] != '/')
				;
			continue;
		}
		n += (size_t)sprintf(out + n, "%s%s", n ? "/" : "", name);
	}
	out[n] = '\0';
	if (!errno)
		return out;
	/* a component is too long: the system reports it */
	free(out);
	return xstrdup(rest);
}

void spot_close(struct spot *at)
{
	kp_close_keeping_errno(at->dir);
	free(at->name);
}

/* Find REST, which has no "..", below the root ROOT.  Its directory is opened with FLAGS. */
static int resolve_inside(int root, const char *rest, int flags, struct spot *at)
{
	const char *slash = strrchr(rest, '/');
	char *dir = xstrndup(rest, slash ? (size_t)(slash - rest) : 0);

	*at = (struct spot){.dir = open_below(root, dir, flags, 0)};
	free(dir);
	if (at->dir < 0)
		return -1;
	at->name = xstrdup(slash ? slash + 1 : *rest ? rest : ".");
	return 0;
}

/*
 * Return what PATH is below the root *ROOT, without "..", on the heap.  NULL: PATH is an
 * operand.  PROPER: a root itself is below the one around it.
 */
static char *rest_in_root(const char *path, bool proper, int *root)
{
	const char *rest = NULL;

	*root = find_root_of(path, proper, &rest);
	return *root < 0 ? NULL : normalise_path(rest);
}

int resolve_spot(const char *path, enum spot_kind which, struct spot *at)
{
	KP_AUTO_FREE char *inside = NULL;
	const char *rest;
	int root;

	if (!*path) {
		errno = ENOENT;
		return -1;
	}
	if (which == SPOT_FOLLOWED) {
		root = resolve_root(path, &rest);
		return root < 0 ? resolve_operand(AT_FDCWD, path, true, at)
				: resolve_operand(root, *rest ? rest : ".", true, at);
	}
	inside = rest_in_root(path, which == SPOT_OF_NAME, &root);
	return inside ? resolve_inside(root, inside, PASS_THROUGH, at)
		      : resolve_operand(AT_FDCWD, path, false, at);
}

int below_open(const char *path, int flags, mode_t mode)
{
	int root, fd;
	KP_AUTO_FREE char *inside = rest_in_root(path, false, &root);
	struct spot at;

	flags |= O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	if (inside)
		return open_below(root, inside, flags, mode);
	if (resolve_spot(path, SPOT_ITSELF, &at) < 0)
		return -1;
	fd = openat(at.dir, at.name, flags, mode);
	spot_close(&at);
	return fd;
}

int below_dir_open(struct below_dir *dir, const char *path)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC; /* it can be flushed */
	int root;
	KP_AUTO_FREE char *inside = rest_in_root(path, false, &root);
	struct spot at;

	*dir = (struct below_dir){.fd = -1};
	if ((inside ? resolve_inside(root, inside, flags, &at)
		    : resolve_spot(path, SPOT_ITSELF, &at)) < 0)
		return -1;
	dir->fd = inside ? at.dir : openat(at.dir, ".", flags);
	dir->name = at.name;
	if (!inside)
		kp_close_keeping_errno(at.dir);
	if (dir->fd >= 0)
		return 0;
	below_dir_close(dir);
	return -1;
}

void below_dir_close(struct below_dir *dir)
{
	kp_close_keeping_errno(dir->fd);
	free(dir->name);
	*dir = (struct below_dir){.fd = -1};
}

/* --- making and removing roots ----------------------------------------------------------- */

kpack_error_t below_root(const char *path, struct kpackx_error *why)
{
	const char *rest;
	int fd;

	/* an operand through a link in another operand is a root of its own */
	fd = resolve_root(path, &rest) < 0 ? -1
					   : below_open(path, O_PATH | O_DIRECTORY, 0);
	if (fd >= 0) {
		close(fd);
		return KPACK_SUCCESS;
	}
	fd = below_open_following(path, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return below_fail(why, "cannot open the directory");
	add_root(path, fd);
	return KPACK_SUCCESS;
}

kpack_error_t below_root_if_directory(const char *path, struct kpackx_error *why)
{
	struct stat st;

	if (below_stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return KPACK_SUCCESS;
	return below_root(path, why);
}

bool below_hold(const char *path)
{
	struct kpackx_error why = {0};

	if (!below_root_if_directory(path, &why))
		return true;
	report_why(path, &why);
	return false;
}

kpack_error_t below_adopt_root(const char *path, int fd, struct kpackx_error *why)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return below_fail(why, "cannot keep the directory open");
	add_root(path, copy);
	return KPACK_SUCCESS;
}

kpack_error_t below_make_root(const char *path, mode_t mode, struct kpackx_error *why)
{
	kpack_error_t err;

	KP_TRY(below_mkdirs(path, mode, why));
	err = below_root(path, why);
	return err ? kp_fail_prefix(why, err, "%s", path) : KPACK_SUCCESS;
}

int below_rmdir(const char *path)
{
	const char *rest;
	struct spot at;
	int status;

	if (resolve_spot(path, SPOT_OF_NAME, &at) < 0)
		return -1;
	status = unlinkat(at.dir, at.name, AT_REMOVEDIR);
	spot_close(&at);
	/*
	 * If a root in another one is gone, another directory that gets its name is looked
	 * for in that one.
	 */
	if (status == 0 && find_root_of(path, true, &rest) >= 0) {
		pthread_mutex_lock(&roots.lock);
		for (size_t i = 0; i < roots.count; i++) {
			rest = rest_below(&roots.items[i], path);
			roots.items[i].removed |= rest && !*rest;
		}
		pthread_mutex_unlock(&roots.lock);
	}
	return status;
}

kpack_error_t below_mkdirs(const char *path, mode_t mode, struct kpackx_error *why)
{
	int root;
	char *inside = rest_in_root(path, false, &root);
	struct walk w = {.dir = openat(inside ? root : AT_FDCWD,
				       !inside && *path == '/' ? "/" : ".",
				       PASS_THROUGH)};
	kpack_error_t err = KPACK_SUCCESS;
	char name[NAME_MAX + 1];
	int status = w.dir < 0 ? -1 : 0;
	struct stat st;
	bool magic;

	w.rest = w.pending = inside ? inside : xstrdup(path);
	w.links = inside ? MAX_LINKS : 0; /* inside a root no link is followed */
	while (status == 0 && next_component(&w.rest, name)) {
		bool last = !w.rest[strspn(w.rest, "/")];
		int error;

		/* we must be able to create the next directory in it */
		status = mkdirat(w.dir, name, mode | (last ? 0 : S_IWUSR | S_IXUSR));
		error = errno;
		/* for one that exists, EROFS or EACCES can come before EEXIST */
		if (status < 0 && (error == EEXIST ||
				   fstatat(w.dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0))
			status = 0;
		else
			errno = error;
		if (status == 0)
			status = take_component(&w, name, false, &magic);
	}
	if (status == 0 && !errno && fstat(w.dir, &st) == 0 && !S_ISDIR(st.st_mode))
		errno = EEXIST;
	if (status < 0 || errno)
		err = kp_fail_prefix(why, below_fail(why, "cannot make the directory"),
				     "%s", path);
	if (w.dir >= 0)
		close(w.dir);
	free(w.pending);
	return err;
}

/* --- users that can exchange a file ----------------------------------------------------- */

bool below_is_firm(const char *path)
{
	int dir = open("/", PASS_THROUGH);
	char name[NAME_MAX + 1];
	struct stat st = {.st_mode = S_IFDIR};
	bool firm = dir >= 0 && *path == '/';

	while (firm && next_component(&path, name)) {
		int next = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

		firm = next >= 0 && fstat(next, &st) == 0 && may_follow(dir, &st);
		close(dir);
		dir = next;
	}
	if (dir >= 0)
		close(dir);
	return firm && !errno && S_ISREG(st.st_mode) &&
	       (geteuid() != 0 ||
		(st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH))));
}
