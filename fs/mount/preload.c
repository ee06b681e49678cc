/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <fts.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "fs/base/log.h"
#include "preload.h"

#define STEP (128 << 10)

/* True if a pattern matches PATH; HAD marks the patterns that matched. */
static bool is_wanted(const char *path, char *const *patterns, size_t n, bool *had)
{
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		const char *pattern = patterns[i] + strspn(patterns[i], "/");

		if (fnmatch(pattern, path, FNM_PATHNAME | FNM_PERIOD) == 0)
			any = had[i] = true;
	}
	return any;
}

/* Read a file into the page cache.  The server logs failures to read. */
static void load_file(const char *path)
{
	static char bytes[STEP];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	if (fd < 0)
		return;
	do {
		n = read(fd, bytes, sizeof(bytes));
	} while (n > 0 || (n < 0 && errno == EINTR));
	close(fd);
}

static void walk_mount(const char *root, char *const *patterns, size_t n, bool *had)
{
	char *roots[] = {strdup(root), NULL}; /* fts wants writable strings */
	FTS *fts = roots[0] ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL)
			    : NULL;
	size_t skip = strlen(root);
	FTSENT *e;

	while (fts && (e = fts_read(fts))) {
		if (e->fts_info != FTS_F)
			continue;
		if (is_wanted(e->fts_path + skip + strspn(e->fts_path + skip, "/"),
			      patterns, n, had))
			load_file(e->fts_accpath);
	}
	if (fts)
		fts_close(fts);
	free(roots[0]);
}

/* Write a path to the root of M that nobody can lead elsewhere.  false: logged. */
static bool open_mount(const struct mount_point *m, char root[32])
{
	int fd = open(m->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 &&
	    (!m->minor || st.st_dev == makedev(0, m->minor))) {
		snprintf(root, 32, "/proc/self/fd/%d/.", fd);
		return true;
	}
	log_about(LOG_WARNING, m->path, "preload: is not the mount");
	return false;
}

static void lower_priority(void)
{
	const struct sched_param lowest = {0};

	if (nice(19) == -1 || sched_setscheduler(0, SCHED_IDLE, &lowest))
		log_print(LOG_INFO, "preload: cannot lower its priority");
}

static void preload_files(const struct mount_point *m, char *const *patterns, size_t n)
{
	bool *had = calloc(n, sizeof(*had));
	char root[32];

	lower_priority();
	if (!had || !open_mount(m, root)) {
		free(had);
		return;
	}
	walk_mount(root, patterns, n, had);
	for (size_t i = 0; i < n; i++)
		if (!had[i])
			log_about(LOG_WARNING, patterns[i], "preload: no file matches");
	free(had);
}

pid_t preload_start(const struct mount_point *m, char *const *patterns, size_t n,
		    const int close_these[2])
{
	pid_t pid = fork();
	sigset_t none;

	if (pid < 0)
		log_about(LOG_WARNING, "preload", strerror(errno));
	if (pid != 0)
		return pid;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (size_t i = 0; i < 2; i++)
		close(close_these[i]);
	preload_files(m, patterns, n);
	/* _exit, so that unflushed output of the parent is not written twice. */
	_exit(0);
}
