/* SPDX-License-Identifier: MIT */
#include "path_walk.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "path_step.h"

#define LINKS_MAX 40 /* in one path, as the kernel's */

bool kp_walk_begin(struct kp_walk *w, const char *path)
{
	*w = (struct kp_walk){
		.at = kp_step_openat(AT_FDCWD, *path == '/' ? "/" : ".", KP_STEP_PASS, 0),
		.path = strdup(path),
	};
	w->rest = w->path;
	if (w->at >= 0 && (!*path || !w->path)) {
		errno = *path ? ENOMEM : ENOENT;
		return false;
	}
	return w->at >= 0;
}

void kp_walk_end(struct kp_walk *w)
{
	kp_close_keeping_errno(w->at);
	w->at = -1;
	free(w->path);
	w->path = NULL;
}

bool kp_walk_name(struct kp_walk *w, char name[NAME_MAX + 1])
{
	size_t length;

	errno = 0;
	do {
		w->rest += strspn(w->rest, "/");
		length = strcspn(w->rest, "/");
		if (length > NAME_MAX) {
			errno = ENAMETOOLONG;
			return false;
		}
		memcpy(name, w->rest, length);
		name[length] = '\0';
		w->rest += length;
	} while (strcmp(name, ".") == 0);
	return length > 0;
}

bool kp_walk_is_last(const struct kp_walk *w)
{
	return w->rest[strspn(w->rest, "/")] == '\0';
}

bool kp_walk_go(struct kp_walk *w, int fd)
{
	kp_close_keeping_errno(w->at);
	w->at = fd;
	return fd >= 0;
}

/* Whether the kernel follows the link ST in the directory DIR by default. */
static bool may_follow(int dir, const struct stat *link)
{
	const mode_t shared = S_ISVTX | S_IWOTH;
	struct stat st;

	return fstat(dir, &st) == 0 &&
	       ((st.st_mode & shared) != shared || link->st_uid == geteuid() ||
		link->st_uid == st.st_uid);
}

bool kp_walk_is_magic(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Go on with the text of the link open at FD, then with what is left. */
static bool follow_text(struct kp_walk *w, int fd)
{
	char text[PATH_MAX], *path;
	ssize_t size = readlinkat(fd, "", text, sizeof(text) - 1);

	if (size < 0)
		return false;
	text[size] = '\0';
	if (asprintf(&path, "%s/%s", text, w->rest) < 0) {
		errno = ENOMEM;
		return false;
	}
	free(w->path);
	w->rest = w->path = path;
	return *text != '/' ||
	       kp_walk_go(w, kp_step_openat(AT_FDCWD, "/", KP_STEP_PASS, 0));
}

bool kp_walk_follow(struct kp_walk *w, const char *name, int fd)
{
	if (++w->links > LINKS_MAX) {
		errno = ELOOP;
		return false;
	}
	if (kp_walk_is_magic(fd))
		return kp_walk_go(w, kp_step_openat(w->at, name, O_PATH | O_CLOEXEC, 0));
	return follow_text(w, fd);
}

bool kp_walk_step(struct kp_walk *w, const char *name)
{
	/* O_DIRECTORY mounts what is mounted on demand */
	int fd = kp_step_openat(w->at, name, KP_STEP_PASS | O_NOFOLLOW, 0);
	struct stat st;
	bool followed = false;

	if (fd >= 0)
		return kp_walk_go(w, fd);
	if (errno != ENOTDIR && errno != ELOOP)
		return false;
	fd = kp_step_openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0 || fstat(fd, &st) < 0) {
		kp_close_keeping_errno(fd);
		return false;
	}
	if (!S_ISLNK(st.st_mode))
		return kp_walk_go(w, fd);
	if (kp_step_is_guarded() && kp_walk_is_last(w) && !may_follow(w->at, &st))
		errno = EACCES;
	else
		followed = kp_walk_follow(w, name, fd);
	kp_close_keeping_errno(fd);
	return followed;
}

/* --- whole paths --------------------------------------------------------------------- */

/* Step to the end of W, following its last component only if FOLLOW. */
static bool walk_on(struct kp_walk *w, bool follow)
{
	char name[NAME_MAX + 1];
	bool fine = true;

	while (fine && kp_walk_name(w, name)) {
		if (follow || !kp_walk_is_last(w))
			fine = kp_walk_step(w, name);
		else
			fine = kp_walk_go(
				w, kp_step_openat(w->at, name,
						  O_PATH | O_NOFOLLOW | O_CLOEXEC, 0));
	}
	return fine && !errno;
}

static int open_by_steps(const char *path, int flags)
{
	struct kp_walk w;
	int fd = -1;

	if (kp_walk_begin(&w, path) && walk_on(&w, !(flags & O_NOFOLLOW))) {
		fd = flags & O_PATH ? w.at : kp_step_reopen(w.at, flags, 0);
		if (flags & O_PATH)
			w.at = -1;
	}
	kp_walk_end(&w);
	return fd;
}

static int open_once(const char *path, int flags)
{
	bool step = true;
	int fd = -1;

	if (!kp_step_is_guarded())
		return open(path, flags | O_CLOEXEC);
	/* most paths stay in the mount of the root directory */
	if (*path == '/')
		fd = kp_step_within(AT_FDCWD, path, flags, 0, &step);
	return step ? open_by_steps(path, flags) : fd;
}

int kp_path_open(const char *path, int flags)
{
	int fd;

	do
		fd = open_once(path, flags);
	while (fd < 0 && errno == EINTR);
	return fd;
}

int kp_path_stat(const char *path, bool follow, struct stat *st)
{
	int fd, status;

	if (!kp_step_is_guarded())
		return follow ? stat(path, st) : lstat(path, st);
	fd = kp_path_open(path, O_PATH | (follow ? 0 : O_NOFOLLOW));
	if (fd < 0)
		return -1;
	status = fstat(fd, st);
	kp_close_keeping_errno(fd);
	return status;
}

kpack_error_t kp_path_fail(struct kpackx_error *why, const char *what)
{
	if (errno == EREMOTE)
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "%s: %s", what,
			       KP_STEP_REFUSED);
	return kp_fail_errno(why, errno, "%s", what);
}
