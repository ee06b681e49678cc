/* SPDX-License-Identifier: MIT */
#include "watch.h"
#include <ctype.h>
#include <dirent.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char text[PATH_MAX + 128];

static const char *describe(const char *what, const char *path, const struct stat *st)
{
	snprintf(text, sizeof(text), "%s: %s, mode %o, owner %u:%u", what, path,
		 st->st_mode & 07777, st->st_uid, st->st_gid);
	return text;
}

/* The descriptor that a call writes to, or -1. */
static int written_fd(const struct seccomp_data *d)
{
	switch (d->nr) {
	case SYS_write:
	case SYS_writev:
	case SYS_pwrite64:
	case SYS_pwritev:
	case SYS_sendfile:
		return (int)d->args[0];
	case SYS_copy_file_range:
		return (int)d->args[2];
	default:
		return -1;
	}
}

/* Its path below DIR, and what it is.  False if it is no file there. */
static bool look_at_fd(unsigned pid, const char *fd, const char *dir, char path[PATH_MAX],
		       struct stat *st)
{
	char name[64];
	size_t n = strlen(dir);
	ssize_t size;

	snprintf(name, sizeof(name), "/proc/%u/fd/%.12s", pid, fd);
	size = readlink(name, path, PATH_MAX - 1);
	path[size > 0 ? size : 0] = '\0';
	return strncmp(path, dir, n) == 0 && path[n] == '/' && stat(name, st) == 0 &&
	       S_ISREG(st->st_mode);
}

static bool is_powerful(const struct stat *st)
{
	return S_ISREG(st->st_mode) && ((st->st_uid == 0 && (st->st_mode & S_ISUID)) ||
					(st->st_gid == 0 && (st->st_mode & S_ISGID)));
}

static const char *look_at_fds(unsigned pid, const char *dir)
{
	char name[64], path[PATH_MAX];
	const char *found = NULL;
	struct dirent *e;
	struct stat st;
	DIR *d;

	snprintf(name, sizeof(name), "/proc/%u/fd", pid);
	d = opendir(name);
	while (d && !found && (e = readdir(d)))
		if (isdigit(e->d_name[0]) && look_at_fd(pid, e->d_name, dir, path, &st) &&
		    is_powerful(&st))
			found = describe("set-user-ID of root", path, &st);
	if (d)
		closedir(d);
	return found;
}

static const char *look_at_files(const char *dir)
{
	char *const roots[] = {(char *)dir, NULL};
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	const char *found = NULL;
	FTSENT *e;

	while (fts && !found && (e = fts_read(fts)))
		if (e->fts_info == FTS_F && is_powerful(e->fts_statp))
			found = describe("set-user-ID of root", e->fts_path,
					 e->fts_statp);
	if (fts)
		fts_close(fts);
	return found;
}

const char *watch_look(const struct seccomp_notif *s, const char *dir, bool files)
{
	char fd[16], path[PATH_MAX];
	int written = written_fd(&s->data);
	const char *found;
	struct stat st;

	snprintf(fd, sizeof(fd), "%d", written);
	/* a nameless file can be opened by nobody */
	if (written >= 0 && look_at_fd(s->pid, fd, dir, path, &st) && st.st_nlink > 0 &&
	    (st.st_mode & 077))
		return describe("written to while others may open it", path, &st);
	found = look_at_fds(s->pid, dir);
	return found || !files ? found : look_at_files(dir);
}
