/* SPDX-License-Identifier: MIT */
#include "below.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "core/archive/archive.h"
#include "core/archive/find.h"
#include "core/writer/writer.h"
#include "packer/base/xalloc.h"
#include "packer/cli/report.h"

/* As the kernel: so many links in one path are a circle. */
#define MAX_LINKS 40

/* Directories are passed through without the right to list them. */
#define PASS (O_PATH | O_DIRECTORY | O_CLOEXEC)

/* --- roots --------------------------------------------------------------------------- */

struct root {
	char *path; /* without slashes at its end */
	int fd;
};

/* Never shrinks: a descriptor that was found stays open. */
static struct {
	pthread_mutex_t lock;
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
 * Find the innermost root of PATH; if PROPER, not PATH itself.  -1: PATH is an operand.
 */
static int find_root_of(const char *path, bool proper, const char **rest)
{
	int fd = -1;
	size_t best = 0;

	pthread_mutex_lock(&roots.lock);
	for (size_t i = 0; i < roots.count; i++) {
		const char *below = rest_below(&roots.items[i], path);
		size_t length = strlen(roots.items[i].path);

		if (below && (*below || !proper) && (fd < 0 || length > best)) {
			fd = roots.items[i].fd;
			best = length;
			*rest = below;
		}
	}
	pthread_mutex_unlock(&roots.lock);
	return fd;
}

static int find_root(const char *path, const char **rest)
{
	return find_root_of(path, false, rest);
}

static void add_root(const char *path, int fd)
{
	pthread_mutex_lock(&roots.lock);
	xgrow(&roots.items, roots.count, &roots.cap, sizeof(*roots.items));
	roots.items[roots.count++] =
		(struct root){xstrndup(path, trimmed_length(path)), fd};
	pthread_mutex_unlock(&roots.lock);
}

/* --- resolving ----------------------------------------------------------------------- */

/* Close FD, keeping errno. */
static void close_quietly(int fd)
{
	int error = errno;

	if (fd >= 0)
		close(fd);
	errno = error;
}

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
 * Open the directory REST below FD with FLAGS, by single components: the kernel has no
 * openat2.
 */
static int step_down(int fd, const char *rest, int flags)
{
	int dir = openat(fd, ".", PASS);
	char name[NAME_MAX + 1];

	while (dir >= 0 && next_component(&rest, name)) {
		int next = openat(dir, name, PASS | O_NOFOLLOW);
		struct stat st;

		/* Linux says ENOTDIR of a link that O_PATH | O_DIRECTORY meets */
		if (next < 0 && errno == ENOTDIR &&
		    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISLNK(st.st_mode))
			errno = ELOOP;
		close_quietly(dir);
		dir = next;
	}
	if (dir >= 0 && errno) {
		close_quietly(dir);
		return -1;
	}
	if (dir >= 0 && flags != PASS) {
		int passed = dir;

		dir = openat(passed, ".", flags);
		close_quietly(passed);
	}
	return dir;
}

/*
 * Open REST below the root FD; no link is followed, but a link itself can be opened with
 * O_PATH and O_NOFOLLOW.  STEP: the kernel cannot do it at once.
 */
static int open_below(int fd, const char *rest, int flags, mode_t mode, bool *step)
{
	const struct open_how how = {
		/* openat2 refuses what O_PATH ignores */
		.flags = (unsigned)flags & ~(flags & O_PATH ? O_NOCTTY | O_NONBLOCK : 0),
		.mode = flags & (O_CREAT | __O_TMPFILE) ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	int opened;

	do
		opened = (int)syscall(SYS_openat2, fd, rest, &how, sizeof(how));
	while (opened < 0 && (errno == EINTR || errno == EAGAIN));
	*step = opened < 0 &&
		(errno == ENOSYS || errno == EPERM || errno == ENAMETOOLONG);
	return opened;
}

/*
 * Open the directory REST, which has no "..", below the root FD with FLAGS; no link is
 * followed.
 */
static int open_inside(int fd, const char *rest, int flags)
{
	bool step;
	int dir;

	if (!*rest)
		return openat(fd, ".", flags);
	dir = open_below(fd, rest, flags, 0, &step);
	return step ? step_down(fd, rest, flags) : dir;
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

/* The text of the link open at FD, which was opened with O_PATH; NULL and errno. */
static char *link_text(int fd)
{
	char text[PATH_MAX];
	ssize_t size = readlinkat(fd, "", text, sizeof(text));

	if (size < 0 || size == sizeof(text)) {
		errno = size < 0 ? errno : ENAMETOOLONG;
		return NULL;
	}
	return xstrndup(text, (size_t)size);
}

/* A path, taken apart: its directory, and the last component. */
struct spot {
	int dir; /* O_PATH */
	char *name;
	bool magic; /* a link of /proc, which the kernel must follow */
};

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
	char *text, *pending;

	if (!may_follow(w->dir, st) || ++w->links > MAX_LINKS) {
		errno = ELOOP;
		return -1;
	}
	text = link_text(fd);
	if (!text)
		return -1;
	if (*text == '/') {
		close(w->dir);
		w->dir = open("/", PASS);
	}
	pending = xasprintf("%s/%s", text, w->rest);
	free(text);
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
	int next = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), status = -1;
	struct stat st;

	if (next < 0)
		return last && errno == ENOENT ? 1 : -1;
	if (fstat(next, &st) == 0 && S_ISLNK(st.st_mode)) {
		if (!is_on_proc(next)) {
			status = follow_link(w, next, &st);
			close_quietly(next);
			return status;
		}
		*magic = last;
		close(next);
		if (last)
			return 1;
		next = openat(w->dir, name, PASS);
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
static int walk_operand(int start, const char *path, bool follow, struct spot *at)
{
	struct walk w = {.dir = openat(start, *path == '/' ? "/" : ".", PASS)};
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
	if (status < 0)
		close_quietly(w.dir);
	else if (w.dir >= 0)
		*at = (struct spot){w.dir, xstrdup(status ? name : "."), at->magic};
	free(w.pending);
	return at->dir < 0 ? -1 : 0;
}

/* Whether REST has neither "." nor ".." nor empty components. */
static bool is_normal(const char *rest)
{
	size_t length = strcspn(rest, "/");

	while (length &&
	       !(rest[0] == '.' && (length == 1 || (length == 2 && rest[1] == '.')))) {
		rest += length;
		if (!*rest)
			return true;
		length = strcspn(++rest, "/");
	}
	return false;
}

/*
 * Take the components "." and ".." out of REST, which has no links.  NULL: it leads above
 * where it begins.
 */
static char *normalise(const char *rest)
{
	char *out, name[NAME_MAX + 1];
	size_t n = 0;

	if (is_normal(rest))
		return xstrdup(rest);
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

static void spot_close(struct spot *at)
{
	close_quietly(at->dir);
	free(at->name);
}

/* Find REST, which has no "..", below the root ROOT.  Its directory is opened with FLAGS. */
static int find_inside(int root, const char *rest, int flags, struct spot *at)
{
	const char *slash = strrchr(rest, '/');
	char *dir = xstrndup(rest, slash ? (size_t)(slash - rest) : 0);

	*at = (struct spot){.dir = open_inside(root, dir, flags)};
	free(dir);
	if (at->dir < 0)
		return -1;
	at->name = xstrdup(slash ? slash + 1 : *rest ? rest : ".");
	return 0;
}

/* Which place of a path is asked for. */
enum place {
	PLACE,          /* a root's is the root itself */
	PLACE_OF_NAME,  /* a root's is in its parent: to rename or remove it */
	PLACE_FOLLOWED, /* follow an operand's last component too */
};

/*
 * Return what PATH is below the root *ROOT, without "..", on the heap.  NULL: PATH is an
 * operand.  PROPER: a root itself is below the one around it.
 */
static char *find_rest(const char *path, bool proper, int *root)
{
	const char *rest = NULL;

	*root = find_root_of(path, proper, &rest);
	return *root < 0 ? NULL : normalise(rest);
}

/* Find the place of PATH: below a root without links, or as an operand. */
static int find_spot(const char *path, enum place which, struct spot *at)
{
	int root, status;
	char *inside = find_rest(path, which == PLACE_OF_NAME, &root);

	if (!*path) {
		errno = ENOENT;
		status = -1;
	} else if (inside) {
		status = find_inside(root, inside, PASS, at);
	} else {
		status = walk_operand(AT_FDCWD, path, which == PLACE_FOLLOWED, at);
	}
	free(inside);
	return status;
}

/* Room for a name that leads to a descriptor, also one of O_PATH. */
enum { PROC_NAME_SIZE = 32 };

static const char *proc_name(int fd, char out[PROC_NAME_SIZE])
{
	snprintf(out, PROC_NAME_SIZE, "/proc/self/fd/%d", fd);
	return out;
}

/* --- calls --------------------------------------------------------------------------- */

/* Return CALL, which uses AT, for the place WHICH of PATH. */
#define AT_SPOT(path, which, call)                                                       \
	do {                                                                             \
		struct spot at;                                                          \
		int status_;                                                             \
		if (find_spot(path, which, &at) < 0)                                     \
			return -1;                                                       \
		status_ = (int)(call);                                                   \
		spot_close(&at);                                                         \
		return status_;                                                          \
	} while (0)

#define AT_PLACE(path, call) AT_SPOT(path, PLACE, call)

/* Open the place of PATH with openat. */
static int open_at_place(const char *path, int flags, mode_t mode)
{
	AT_PLACE(path, openat(at.dir, at.name, flags, mode));
}

int below_open(const char *path, int flags, mode_t mode)
{
	bool step = true;
	int root, fd = -1;
	char *inside = find_rest(path, false, &root);

	flags |= O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	if (inside && *inside) /* without opening its directory */
		fd = open_below(root, inside, flags, mode, &step);
	free(inside);
	return step ? open_at_place(path, flags, mode) : fd;
}

int below_lstat(const char *path, struct stat *st)
{
	AT_PLACE(path, fstatat(at.dir, at.name, st, AT_SYMLINK_NOFOLLOW));
}

int below_access(const char *path, int mode)
{
	AT_PLACE(path,
		 faccessat(at.dir, at.name, mode, AT_EACCESS | AT_SYMLINK_NOFOLLOW));
}

ssize_t below_readlink(const char *path, char *buf, size_t size)
{
	AT_PLACE(path, readlinkat(at.dir, at.name, buf, size));
}

int below_mkdir(const char *path, mode_t mode)
{
	AT_PLACE(path, mkdirat(at.dir, at.name, mode));
}

int below_unlink(const char *path)
{
	AT_PLACE(path, unlinkat(at.dir, at.name, 0));
}

int below_rmdir(const char *path)
{
	AT_SPOT(path, PLACE_OF_NAME, unlinkat(at.dir, at.name, AT_REMOVEDIR));
}

int below_utimes(const char *path, const struct timespec times[2])
{
	AT_PLACE(path, utimensat(at.dir, at.name, times, AT_SYMLINK_NOFOLLOW));
}

int below_rename(const char *from, const char *to, unsigned flags)
{
	struct spot a, b;
	int status;

	if (find_spot(from, PLACE_OF_NAME, &a) < 0)
		return -1;
	if (find_spot(to, PLACE_OF_NAME, &b) < 0) {
		spot_close(&a);
		return -1;
	}
	status = flags ? renameat2(a.dir, a.name, b.dir, b.name, flags)
		       : renameat(a.dir, a.name, b.dir, b.name);
	spot_close(&a);
	spot_close(&b);
	return status;
}

int below_chmod(const char *path, mode_t mode)
{
	int fd = below_open(path, O_PATH, 0), status = -1;
	char proc[PROC_NAME_SIZE];
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISLNK(st.st_mode))
		errno = ELOOP;
	else
		status = chmod(proc_name(fd, proc), mode); /* fchmod refuses O_PATH */
	close_quietly(fd);
	return status;
}

/* --- following, for reading ------------------------------------------------------------ */

/* Find PATH and follow links: those that stay in a root, and as an operand's. */
static int open_following(const char *path, int flags)
{
	const char *rest = NULL;
	int root = find_root(path, &rest), fd;
	struct spot at;

	if (root >= 0) {
		const struct open_how how = {
			.flags = (unsigned)flags,
			.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
		};

		fd = (int)syscall(SYS_openat2, root, *rest ? rest : ".", &how,
				  sizeof(how));
		if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EXDEV &&
				errno != EAGAIN))
			return fd;
		/* it leads out of the root, or the kernel has no openat2 */
		if (walk_operand(root, *rest ? rest : ".", true, &at) < 0)
			return -1;
	} else if (find_spot(path, PLACE_FOLLOWED, &at) < 0) {
		return -1;
	}
	fd = openat(at.dir, at.name, flags | (at.magic ? 0 : O_NOFOLLOW));
	spot_close(&at);
	return fd;
}

int below_open_following(const char *path, int flags)
{
	/* openat2 refuses what O_PATH ignores */
	return open_following(path, flags | O_CLOEXEC |
					    (flags & O_PATH ? 0 : O_NOCTTY | O_NONBLOCK));
}

int below_stat(const char *path, struct stat *st)
{
	int fd = open_following(path, O_PATH | O_CLOEXEC), status;

	if (fd < 0)
		return -1;
	status = fstat(fd, st);
	close_quietly(fd);
	return status;
}

char *below_real(const char *path)
{
	int fd = open_following(path, O_PATH | O_CLOEXEC);
	char proc[PROC_NAME_SIZE], text[PATH_MAX];
	ssize_t size;

	if (fd < 0)
		return NULL;
	size = readlink(proc_name(fd, proc), text, sizeof(text));
	close_quietly(fd);
	if (size < 0 || size == sizeof(text)) {
		errno = size < 0 ? errno : ENAMETOOLONG;
		return NULL;
	}
	return xstrndup(text, (size_t)size);
}

/* --- following, for writing -------------------------------------------------------------- */

/* Open T's file, unless it is missing. */
static int open_target(struct below_target *t)
{
	t->fd = openat(t->dir, t->name,
		       O_PATH | O_CLOEXEC | (t->is_open ? 0 : O_NOFOLLOW));
	if (t->fd < 0)
		return errno == ENOENT ? 0 : -1;
	if (fstat(t->fd, &t->st) < 0)
		return -1;
	if (!S_ISLNK(t->st.st_mode))
		return 0;
	errno = ELOOP; /* a link has taken the file's place meanwhile */
	return -1;
}

int below_target_open(struct below_target *t, const char *path)
{
	const char *rest = NULL;
	int root = find_root(path, &rest), status;
	struct spot at;

	*t = (struct below_target){.dir = -1, .fd = -1};
	status = root < 0 ? find_spot(path, PLACE_FOLLOWED, &at)
			  : walk_operand(root, *rest ? rest : ".", true, &at);
	if (status < 0)
		return -1;
	t->dir = at.dir;
	t->name = at.name;
	t->is_open = at.magic;
	if (open_target(t) == 0)
		return 0;
	below_target_close(t);
	return -1;
}

void below_target_close(struct below_target *t)
{
	close_quietly(t->fd);
	close_quietly(t->dir);
	free(t->name);
	*t = (struct below_target){.dir = -1, .fd = -1};
}

/* Without /proc, open the name, and look whether it still is that file. */
static int reopen_by_name(const struct below_target *t, int flags)
{
	int fd = openat(t->dir, t->name,
			(flags & ~O_TRUNC) | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && st.st_dev == t->st.st_dev &&
	    st.st_ino == t->st.st_ino) {
		if (!(flags & O_TRUNC) || !S_ISREG(st.st_mode) || ftruncate(fd, 0) == 0)
			return fd;
	} else {
		errno = ESTALE;
	}
	close_quietly(fd);
	return -1;
}

int below_target_reopen(const struct below_target *t, int flags)
{
	char proc[PROC_NAME_SIZE];
	int fd = open(proc_name(t->fd, proc), flags | O_CLOEXEC | O_NOCTTY);

	return fd < 0 && errno == ENOENT ? reopen_by_name(t, flags) : fd;
}

int below_target_access(const struct below_target *t, int mode)
{
	char proc[PROC_NAME_SIZE];
	int status = faccessat(AT_FDCWD, proc_name(t->fd, proc), mode, AT_EACCESS);

	return status < 0 && errno == ENOENT
		       ? faccessat(t->dir, t->name, mode, AT_EACCESS) /* no /proc */
		       : status;
}

int below_target_named(const struct below_target *t, struct stat *st)
{
	return fstatat(t->dir, t->name, st, AT_SYMLINK_NOFOLLOW);
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
	return fstat(t->dir, &dir) == 0 && dir.st_uid == 0 &&
	       !(dir.st_mode & (S_IWGRP | S_IWOTH));
}

/* --- temporary names --------------------------------------------------------------------- */

bool below_random(char text[BELOW_RANDOM_SIZE + 1])
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	uint8_t random[BELOW_RANDOM_SIZE];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return false;
	for (size_t i = 0; i < BELOW_RANDOM_SIZE; i++)
		text[i] = letters[random[i] % (sizeof(letters) - 1)];
	text[BELOW_RANDOM_SIZE] = '\0';
	return true;
}

int below_mkstemps(char *path, size_t suffix)
{
	char *place = path + strlen(path) - suffix - BELOW_RANDOM_SIZE;
	char random[BELOW_RANDOM_SIZE + 1];
	int fd = -1;

	while (below_random(random)) {
		memcpy(place, random, BELOW_RANDOM_SIZE);
		fd = below_open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
		if (fd >= 0 || errno != EEXIST)
			break;
	}
	return fd;
}

/* --- directories ----------------------------------------------------------------------- */

DIR *below_opendir(const char *path)
{
	int fd = below_open_following(path, O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		close_quietly(fd);
	return dir;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int below_scandir(const char *path, struct dirent ***names,
		  int (*select)(const struct dirent *))
{
	int fd = below_open_following(path, O_RDONLY | O_DIRECTORY), n;

	if (fd < 0)
		return -1;
	n = scandirat(fd, ".", names, select, by_bytes);
	close_quietly(fd);
	return n;
}

int below_dir_open(struct below_dir *dir, const char *path)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC; /* it can be flushed */
	int root, status;
	char *rest = find_rest(path, false, &root);
	bool inside = rest;
	struct spot at;

	*dir = (struct below_dir){.fd = -1};
	status = inside ? find_inside(root, rest, flags, &at)
			: find_spot(path, PLACE, &at);
	free(rest);
	if (status < 0)
		return -1;
	dir->fd = inside ? at.dir : openat(at.dir, ".", flags);
	dir->name = at.name;
	if (!inside)
		close_quietly(at.dir);
	if (dir->fd >= 0)
		return 0;
	below_dir_close(dir);
	return -1;
}

void below_dir_close(struct below_dir *dir)
{
	close_quietly(dir->fd);
	free(dir->name);
	*dir = (struct below_dir){.fd = -1};
}

kpack_error_t below_fail(struct kpackx_error *why, const char *what)
{
	if (errno != ELOOP)
		return kp_fail_errno(why, errno, "%s", what);
	return kp_fail(
		why, KPACK_ERROR_IO_ERROR,
		"%s: it, or a directory on its way, is a symbolic link that is not "
		"followed, because another user may have put it there",
		what);
}

kpack_error_t below_root(const char *path, struct kpackx_error *why)
{
	const char *rest;
	struct stat st;
	int fd;

	if (find_root(path, &rest) >= 0)
		return KPACK_SUCCESS;
	fd = below_open_following(path, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return below_fail(why, "cannot open the directory");
	if (fstat(fd, &st) < 0) {
		kpack_error_t err = below_fail(why, "cannot stat");

		close(fd);
		return err;
	}
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
	int root = find_root(path, &rest);
	char *inside = root < 0 ? NULL : normalise(rest);
	struct walk w = {.dir = openat(inside ? root : AT_FDCWD,
				       !inside && *path == '/' ? "/" : ".", PASS)};
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

kpack_error_t below_make_root(const char *path, mode_t mode, struct kpackx_error *why)
{
	kpack_error_t err;

	KP_TRY(below_mkdirs(path, mode, why));
	err = below_root(path, why);
	return err ? kp_fail_prefix(why, err, "%s", path) : KPACK_SUCCESS;
}

/* --- what core opens ------------------------------------------------------------------- */

typedef int open_fn(const char *path, int flags);

static int open_itself(const char *path, int flags)
{
	return below_open(path, flags, 0);
}

/* Open for reading the regular file open at FD with O_PATH, which OPEN opened as PATH. */
static int open_again(int fd, const char *path, open_fn *open_path)
{
	char proc[PROC_NAME_SIZE];
	int again =
		open(proc_name(fd, proc), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	/* without /proc, a device may be opened that just took the file's place */
	return again < 0 && errno == ENOENT ? open_path(path, O_RDONLY) : again;
}

/* Open a regular file, but not even for a moment a FIFO or a device. */
static kpack_error_t open_regular(const char *path, open_fn *open_path, int *fd,
				  struct stat *st, struct kpackx_error *why)
{
	int found = open_path(path, O_PATH), opened;
	kpack_error_t err;

	if (found >= 0 && fstat(found, st) == 0 && S_ISLNK(st->st_mode)) {
		close(found);
		found = -1;
		errno = ELOOP;
	}
	if (found < 0)
		return below_fail(why, "cannot open");
	err = kp_file_check(found, st, why);
	opened = err ? -1 : open_again(found, path, open_path);
	if (!err && opened < 0)
		err = below_fail(why, "cannot open");
	close(found);
	if (!err)
		err = kp_file_check(opened, st, why);
	if (!err)
		*fd = opened;
	else if (opened >= 0)
		close(opened);
	return err;
}

kpack_error_t below_file_open(const char *path, int *fd, struct stat *st,
			      struct kpackx_error *why)
{
	return open_regular(path, below_open_following, fd, st, why);
}

kpack_error_t below_file_open_nofollow(const char *path, int *fd, struct stat *st,
				       struct kpackx_error *why)
{
	return open_regular(path, open_itself, fd, st, why);
}

kpack_error_t below_file_open_guarded(const char *path, int *fd, struct stat *st,
				      struct kpackx_error *why)
{
	int opened = below_open(path, O_RDONLY, 0);
	kpack_error_t err;

	if (opened < 0)
		return below_fail(why, "cannot open");
	err = kp_file_check(opened, st, why);
	if (err)
		close(opened);
	else
		*fd = opened;
	return err;
}

kpack_error_t below_file_open_again(const char *path, const struct file_identity *was,
				    int *fd, struct kpackx_error *why)
{
	struct stat st;

	KP_TRY(below_file_open_nofollow(path, fd, &st, why));
	if (file_identity_is(was, &st))
		return KPACK_SUCCESS;
	close(*fd);
	return kp_fail(why, KPACK_ERROR_IO_ERROR, "%s: was changed meanwhile", path);
}

kpack_error_t below_outfile_open(struct kp_outfile *out, const char *path, mode_t mode,
				 struct kpackx_error *why)
{
	struct below_dir dir;
	kpack_error_t err;

	*out = (struct kp_outfile){.fd = -1, .dir_fd = -1};
	if (below_dir_open(&dir, path) < 0)
		return below_fail(why, "cannot open its directory");
	err = kp_outfile_open_at(out, dir.fd, dir.name, mode, why);
	dir.fd = -1;
	below_dir_close(&dir);
	return err;
}

int below_outfile_lstat(const struct kp_outfile *out, struct stat *st)
{
	return fstatat(out->dir_fd, out->name, st, AT_SYMLINK_NOFOLLOW);
}

kpack_error_t below_outfile_open_in(struct kp_outfile *out, const char *dir,
				    const char *name, mode_t mode,
				    struct kpackx_error *why)
{
	char *path = xasprintf("%s/%s", dir, name);
	kpack_error_t err = below_outfile_open(out, path, mode, why);

	free(path);
	return err;
}

kpack_error_t below_archive_open(const char *path, struct kpack_archive **out,
				 struct kpackx_error *why)
{
	struct stat st;
	int fd = -1;

	KP_TRY(below_file_open(path, &fd, &st, why));
	return kp_archive_open_fd(fd, path, out, why);
}

kpack_error_t below_archives_find(const char *source, char ***paths, size_t *count,
				  struct kpackx_error *why)
{
	int fd = open_following(source, O_PATH | O_CLOEXEC);
	kpack_error_t err;

	if (fd < 0)
		return below_fail(why, "cannot look at it");
	err = kp_archives_find_at(fd, source, paths, count, why);
	close(fd);
	return err;
}

kpack_error_t below_writer_open(const char *dir, const char *name,
				const struct kp_writer_options *options,
				struct kp_writer **out, struct kpackx_error *why)
{
	int fd = below_open_following(dir, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return kp_fail_prefix(why, below_fail(why, "cannot open the directory"),
				      "%s", dir);
	return kp_writer_open_at(fd, name, options, out, why);
}
