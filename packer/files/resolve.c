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
#include "core/base/walk.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"

/* Directories are passed through without the right to list them. */
#define PASS_THROUGH (O_PATH | O_DIRECTORY | O_CLOEXEC)

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

int resolve_root(const char *path, bool proper, const char **rest)
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
 * Resolve PATH, which begins in the directory START, by the rules for operands.  FOLLOW:
 * its last component too.  The last component need not exist.
 */
static int resolve_operand(int start, const char *path, bool follow, struct spot *at)
{
	struct kp_walk w;
	bool fine = kp_walk_begin(&w, start, path), found = false, magic = false;
	char name[NAME_MAX + 1];
	size_t n = strlen(path);
	struct statfs fs;
	struct stat st;

	*at = (struct spot){.dir = -1};
	w.wary = geteuid() == 0; /* only root is led by links to what others may not */
	while (fine && !found && kp_walk_name(&w, name)) {
		bool last = kp_walk_is_last(&w) && strcmp(name, "..") != 0;
		bool link = false;
		int fd = -1;

		if (last && follow) {
			fd = openat(w.at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
			fine = fd >= 0 || errno == ENOENT;
			link = fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
			/* a link of /proc is left: only the kernel can follow it */
			magic = link && fstatfs(fd, &fs) == 0 &&
				fs.f_type == PROC_SUPER_MAGIC;
		}
		found = last && (!link || magic);
		kp_close_keeping_errno(fd);
		fine = fine && (found || kp_walk_step(&w, name));
	}
	fine = fine && (found || !errno);
	/* with "/" or "/." at its end PATH can only be a directory, or a link to one */
	if (n > 1 && path[n - 1] == '.')
		n--;
	if (fine && found && n && path[n - 1] == '/' &&
	    fstatat(w.at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode) &&
	    !S_ISLNK(st.st_mode)) {
		errno = ENOTDIR;
		fine = false;
	}
	if (fine) {
		*at = (struct spot){w.at, xstrdup(found ? name : "."), magic};
		w.at = -1;
	}
	kp_walk_end(&w);
	return fine ? 0 : -1;
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
	KP_AUTO_FREE char *dir = xstrndup(rest, slash ? (size_t)(slash - rest) : 0);

	*at = (struct spot){.dir = open_below(root, dir, flags, 0)};
	if (at->dir < 0)
		return -1;
	at->name = xstrdup(slash ? slash + 1 : *rest ? rest : ".");
	return 0;
}

/*
 * Return what PATH is below the root *ROOT, without "." and "..", on the heap.  NULL: PATH is an
 * operand, or leads above the root.  PROPER: a root itself is below the one around it.
 */
static char *rest_in_root(const char *path, bool proper, int *root)
{
	struct kp_walk w = {.rest = NULL};
	char *out, name[NAME_MAX + 1];
	size_t n = 0;

	*root = resolve_root(path, proper, &w.rest);
	if (*root < 0)
		return NULL;
	path = w.rest;
	out = xmalloc(strlen(path) + 2);
	while (kp_walk_name(&w, name)) {
		if (strcmp(name, "..") != 0) {
			n += (size_t)sprintf(out + n, "%s%s", n ? "/" : "", name);
			continue;
		}
		if (n == 0) {
			free(out);
			return NULL;
		}
		while (n && out[--n] != '/')
			;
	}
	out[n] = '\0';
	if (!errno)
		return out;
	/* a component is too long: the system reports it */
	free(out);
	return xstrdup(w.rest);
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
	/* a link in a tree may lead out of it: so it is walked like an operand, from the root on */
	if (which == SPOT_FOLLOWED) {
		root = resolve_root(path, false, &rest);
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

	/* a FIFO must not block, and a terminal must not become ours */
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
	fd = resolve_root(path, false, &rest) < 0
		     ? -1
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
	if (status == 0 && resolve_root(path, true, &rest) >= 0) {
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
	KP_AUTO_FREE char *inside = rest_in_root(path, false, &root);
	const char *way = inside ? inside : path;
	struct kp_walk w;
	bool fine = kp_walk_begin(&w, inside ? root : AT_FDCWD, *way ? way : ".");
	kpack_error_t err = KPACK_SUCCESS;
	char name[NAME_MAX + 1];
	struct stat st;

	w.wary = geteuid() == 0;
	w.links = inside ? KP_WALK_LINKS_MAX : 0; /* inside a root no link is followed */
	while (fine && kp_walk_name(&w, name)) {
		mode_t ours = kp_walk_is_last(&w) ? 0 : S_IWUSR | S_IXUSR;
		/* we must be able to create the next directory in it */
		int status = mkdirat(w.at, name, mode | ours), error = errno;

		/* for one that exists, EROFS or EACCES can come before EEXIST */
		fine = status == 0 || error == EEXIST ||
		       fstatat(w.at, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
		if (!fine)
			errno = error;
		fine = fine && kp_walk_step(&w, name);
	}
	if (fine && !errno && fstat(w.at, &st) == 0 && !S_ISDIR(st.st_mode))
		errno = EEXIST;
	if (!fine || errno)
		err = kp_fail_prefix(why, below_fail(why, "cannot make the directory"),
				     "%s", path);
	kp_walk_end(&w);
	return err;
}

/* --- users that can exchange a file ----------------------------------------------------- */

bool below_is_firm(const char *path)
{
	bool firm;
	KP_AUTO_CLOSE int fd = *path == '/' ? kp_firm_path_open(path, &firm) : -1;
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       (geteuid() != 0 || (firm && kp_only_root_writes(&st)));
}
