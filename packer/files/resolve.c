/* SPDX-License-Identifier: MIT */
/*
 * Below a root the kernel resolves a path at once, and refuses every link.  An operand is
 * walked by single components, because root follows a link only where no other user could have
 * put another one.
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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "below.h"
#include "core/base/file.h"
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

/* Length of PATH without the slashes at its end; 0 for "/". */
static size_t trimmed_length(const char *path)
{
	size_t length = strlen(path);

	while (length && path[length - 1] == '/')
		length--;
	return length;
}

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

void resolve_add_root(const char *path, int fd)
{
	pthread_mutex_lock(&roots.lock);
	xgrow(&roots.items, roots.count, &roots.cap, sizeof(*roots.items));
	roots.items[roots.count++] =
		(struct root){xstrndup(path, trimmed_length(path)), fd, false};
	pthread_mutex_unlock(&roots.lock);
}

void resolve_remove_root(const char *path)
{
	const char *rest;

	if (find_root_of(path, true, &rest) < 0)
		return;
	pthread_mutex_lock(&roots.lock);
	for (size_t i = 0; i < roots.count; i++) {
		rest = rest_below(&roots.items[i], path);
		roots.items[i].removed |= rest && !*rest;
	}
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

int resolve_open(int fd, const char *rest, int flags, mode_t mode)
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
			opened = resolve_open(dir < 0 ? fd : dir, part, PASS_THROUGH, 0);
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

/* Go on with the text of the link open at FD, then with what is left. */
static int follow_link(struct walk *w, int fd, const struct stat *st)
{
	char text[PATH_MAX], *pending;
	ssize_t size;

	if (!may_follow(w->dir, st) || ++w->links > MAX_LINKS) {
		errno = ELOOP;
		return -1;
	}
	size = readlinkat(fd, "", text, sizeof(text) - 1);
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

static bool is_on_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/*
 * Take the component NAME, which is the LAST or not.  Returns 1 if it is the last one and
 * no link, 0 to go on, -1 and errno.
 */
static int take_component(struct walk *w, const char *name, bool last, bool *magic)
{
	int next = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int status = -1;
	struct stat st;

	if (next < 0)
		return last && errno == ENOENT ? 1 : -1;
	if (fstat(next, &st) == 0 && S_ISLNK(st.st_mode)) {
		if (!is_on_proc(next)) {
			status = follow_link(w, next, &st);
			kp_close_keeping_errno(next);
			return status;
		}
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

/* Whether PATH can only be a directory: it ends with "/" or "/.". */
static bool means_directory(const char *path)
{
	size_t n = strlen(path);

	if (n > 1 && path[n - 1] == '.')
		n--;
	return n && path[n - 1] == '/';
}

static bool is_other_file(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode);
}

int resolve_operand(int start, const char *path, bool follow, struct spot *at)
{
	struct walk w = {.dir = openat(start, *path == '/' ? "/" : ".", PASS_THROUGH)};
	char name[NAME_MAX + 1];
	int status = 0;

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
	if (status == 1 && means_directory(path) && is_other_file(w.dir, name)) {
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

int resolve_inside(int root, const char *rest, int flags, struct spot *at)
{
	const char *slash = strrchr(rest, '/');
	char *dir = xstrndup(rest, slash ? (size_t)(slash - rest) : 0);

	*at = (struct spot){.dir = resolve_open(root, dir, flags, 0)};
	free(dir);
	if (at->dir < 0)
		return -1;
	at->name = xstrdup(slash ? slash + 1 : *rest ? rest : ".");
	return 0;
}

char *resolve_rest(const char *path, bool proper, int *root)
{
	const char *rest = NULL;

	*root = find_root_of(path, proper, &rest);
	return *root < 0 ? NULL : normalise_path(rest);
}

int resolve_spot(const char *path, enum spot_kind which, struct spot *at)
{
	int root, status;
	char *inside = resolve_rest(path, which == SPOT_OF_NAME, &root);

	if (!*path) {
		errno = ENOENT;
		status = -1;
	} else if (inside) {
		status = resolve_inside(root, inside, PASS_THROUGH, at);
	} else {
		status = resolve_operand(AT_FDCWD, path, which == SPOT_FOLLOWED, at);
	}
	free(inside);
	return status;
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

/* --- making ---------------------------------------------------------------------------- */

/* Make the directory NAME in W's, unless it exists, and go into it. */
static int make_component(struct walk *w, const char *name, mode_t mode)
{
	bool magic = false;

	if (mkdirat(w->dir, name, mode) < 0 && errno != EEXIST) {
		int error = errno;
		struct stat st;

		/* for one that exists, EROFS or EACCES can come first */
		if (fstatat(w->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			errno = error;
			return -1;
		}
	}
	return take_component(w, name, false, &magic);
}

kpack_error_t below_mkdirs(const char *path, mode_t mode, struct kpackx_error *why)
{
	const char *rest = path;
	int root = resolve_root(path, &rest);
	char *inside = root < 0 ? NULL : normalise_path(rest);
	struct walk w = {.dir = openat(inside ? root : AT_FDCWD,
				       !inside && *path == '/' ? "/" : ".",
				       PASS_THROUGH)};
	kpack_error_t err = KPACK_SUCCESS;
	char name[NAME_MAX + 1];
	int status = w.dir < 0 ? -1 : 0;
	struct stat st;

	w.rest = w.pending = inside ? inside : xstrdup(path);
	w.links = inside ? MAX_LINKS : 0; /* inside a root no link is followed */
	while (status == 0 && next_component(&w.rest, name)) {
		bool last = !w.rest[strspn(w.rest, "/")];

		/* we must be able to create the next directory in it */
		status = make_component(&w, name, mode | (last ? 0 : S_IWUSR | S_IXUSR));
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
