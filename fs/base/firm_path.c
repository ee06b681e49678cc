/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "core/paths/step.h"
#include "firm_path.h"

#define MAX_LINKS 40 /* in one path, as the kernel's */

/* The state of a walk. */
struct walk {
	int fd;        /* what was reached; -1: see errno */
	char *pending; /* the path that REST is in; owned */
	const char *rest;
	int links;
	bool firm; /* so far */
};

static void step_to(struct walk *w, int fd)
{
	int error = errno;

	close(w->fd);
	w->fd = fd;
	errno = error;
}

/* Whether only root can put something else in the place of the entry ST of DIR. */
static bool is_firm(int dir, const struct stat *entry)
{
	struct stat st;

	if (fstat(dir, &st) || st.st_uid != 0)
		return false;
	return !(st.st_mode & (S_IWGRP | S_IWOTH)) ||
	       ((st.st_mode & S_ISVTX) && entry->st_uid == 0);
}

static bool is_on_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Go on with the text of LINK, then with what is left.  false: see errno. */
static bool follow_link(struct walk *w, int link, const struct stat *st)
{
	char text[PATH_MAX], *pending;
	ssize_t n;

	errno = ELOOP;
	if (!is_firm(w->fd, st) || ++w->links > MAX_LINKS)
		return false;
	n = readlinkat(link, "", text, sizeof(text) - 1);
	if (n < 0)
		return false;
	text[n] = '\0';
	if (asprintf(&pending, "%s/%s", text, w->rest) < 0)
		return false;
	free(w->pending);
	w->rest = w->pending = pending;
	if (*text == '/')
		step_to(w, kp_step_openat(AT_FDCWD, "/", KP_STEP_PASS, 0));
	return w->fd >= 0;
}

static void take_component(struct walk *w, const char *name)
{
	bool last = !w->rest[strspn(w->rest, "/")];
	int next = kp_step_openat(w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	struct stat st;

	if (next >= 0 && fstat(next, &st) == 0 && S_ISLNK(st.st_mode)) {
		bool magic = is_on_proc(next), followed = magic;

		if (!magic)
			followed = follow_link(w, next, &st);
		close(next);
		if (!followed)
			step_to(w, -1);
		else if (magic) /* only the kernel can follow it */
			step_to(w, kp_step_openat(w->fd, name, O_PATH | O_CLOEXEC, 0));
		return;
	}
	if (next >= 0)
		w->firm = w->firm && is_firm(w->fd, &st);
	/* O_DIRECTORY mounts what is mounted on demand on the way */
	if (next >= 0 && !last) {
		close(next);
		next = kp_step_openat(w->fd, name, KP_STEP_PASS | O_NOFOLLOW, 0);
	}
	step_to(w, next);
}

int firm_path_open(const char *path, bool *firm)
{
	struct walk w = {
		.fd = kp_step_openat(AT_FDCWD, *path == '/' ? "/" : ".", KP_STEP_PASS, 0),
		.firm = true};
	char name[NAME_MAX + 1];

	w.rest = w.pending = strdup(path);
	if (w.fd >= 0 && (!*path || !w.pending)) {
		errno = *path ? ENOMEM : ENOENT;
		step_to(&w, -1);
	}
	while (w.fd >= 0 && *(w.rest += strspn(w.rest, "/"))) {
		size_t n = strcspn(w.rest, "/");

		if (n > NAME_MAX) {
			errno = ENAMETOOLONG;
			step_to(&w, -1);
			break;
		}
		memcpy(name, w.rest, n);
		name[n] = '\0';
		w.rest += n;
		take_component(&w, name);
	}
	free(w.pending);
	*firm = w.firm;
	return w.fd;
}
