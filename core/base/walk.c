/* SPDX-License-Identifier: MIT */
/*
 * The walk holds one descriptor, opened with O_PATH, and the text that is still to be
 * taken.  A link replaces that text by its own and what follows.  Every component is
 * opened with O_NOFOLLOW, so that what is looked at is what is stepped into.
 */
#include "walk.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "file.h"

/* A directory that is passed through, without the right to list it. */
#define PASS (O_PATH | O_DIRECTORY)

/* Go to FD, which is taken over; -1: false. */
static bool go_to(struct kp_walk *w, int fd)
{
	kp_close_keeping_errno(w->at);
	w->at = fd;
	return fd >= 0;
}

bool kp_walk_begin(struct kp_walk *w, int start, const char *path)
{
	*w = (struct kp_walk){
		.at = openat(start, *path == '/' ? "/" : ".", PASS | O_CLOEXEC),
		.path = strdup(path),
		.firm = true,
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
	go_to(w, -1);
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

/*
 * Whether only root can put something else in the place of ENTRY of the directory DIR: in a sticky
 * one, the entry's owner alone can.
 */
static bool is_firm(int dir, const struct stat *entry)
{
	struct stat st;

	return fstat(dir, &st) == 0 &&
	       (kp_only_root_writes(&st) ||
		(st.st_uid == 0 && (st.st_mode & S_ISVTX) && entry->st_uid == 0));
}

/* Follow the link NAME, which is open at FD: with its text, then with what is left. */
static bool follow_link(struct kp_walk *w, const char *name, int fd,
			const struct stat *st)
{
	char text[PATH_MAX], *path;
	struct statfs fs;
	/* links of /proc have no text that leads to what they stand for */
	bool magic = fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
	ssize_t size;

	if (++w->links > KP_WALK_LINKS_MAX ||
	    (w->wary && !magic && !is_firm(w->at, st))) {
		errno = ELOOP;
		return false;
	}
	if (magic)
		return go_to(w, openat(w->at, name, O_PATH | O_CLOEXEC));
	size = readlinkat(fd, "", text, sizeof(text) - 1);
	if (size < 0)
		return false;
	text[size] = '\0';
	if (asprintf(&path, "%s/%s", text, w->rest) < 0) {
		errno = ENOMEM;
		return false;
	}
	free(w->path);
	w->rest = w->path = path;
	return *text != '/' || go_to(w, open("/", PASS | O_CLOEXEC));
}

bool kp_walk_step(struct kp_walk *w, const char *name)
{
	bool pass = !w->wary || !kp_walk_is_last(w), followed;
	int fd = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), through;
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		kp_close_keeping_errno(fd);
		return false;
	}
	if (S_ISLNK(st.st_mode)) {
		followed = follow_link(w, name, fd, &st);
		kp_close_keeping_errno(fd);
		return followed;
	}
	w->firm = w->firm && is_firm(w->at, &st);
	if (pass && S_ISDIR(st.st_mode)) {
		/* O_DIRECTORY mounts what is mounted on demand */
		through = openat(w->at, name, PASS | O_NOFOLLOW | O_CLOEXEC);
		kp_close_keeping_errno(fd);
		fd = through;
	}
	return go_to(w, fd);
}

int kp_firm_path_open(const char *path, bool *firm)
{
	struct kp_walk w;
	bool fine = kp_walk_begin(&w, AT_FDCWD, path);
	char name[NAME_MAX + 1];
	int fd = -1;

	w.wary = true;
	while (fine && kp_walk_name(&w, name))
		fine = kp_walk_step(&w, name);
	*firm = w.firm;
	if (fine && !errno) {
		fd = w.at;
		w.at = -1;
	}
	kp_walk_end(&w);
	return fd;
}
