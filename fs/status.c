/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include "log.h"
#include "status.h"
#include "summary.h"

#define PATIENCE 5 /* seconds */

static int complain(const char *mountpoint, const char *why)
{
	log_about(LOG_ERR, mountpoint, why);
	return 1;
}

/* What it means that a mount of ours cannot be looked at. */
static const struct {
	int err;
	const char *text;
} meanings[] = {
	{ENOTCONN, "its daemon is dead; fusermount3 -u, or umount, ends the mount"},
	{EACCES, "only who mounted it may look: it has no allow_other"},
	{ENOTDIR, "no kpackfs is mounted here"},
	{ENOENT, "no kpackfs is mounted here"},
};

static const char *explain(int err)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(*meanings); i++)
		if (meanings[i].err == err)
			return meanings[i].text;
	return strerror(err);
}

/* Open its text, of a file system that is FUSE's.  -1 and errno. */
static int open_text(const char *mountpoint)
{
	struct statfs fs;
	int dir = open(mountpoint, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = -1;

	if (dir >= 0 && fstatfs(dir, &fs) == 0) {
		errno = ENOTDIR;
		if (fs.f_type == FUSE_SUPER_MAGIC)
			fd = openat(dir, ".kpackfs/status", O_RDONLY | O_CLOEXEC);
	}
	if (dir >= 0)
		close(dir);
	return fd;
}

static int print(const char *mountpoint)
{
	int fd = open_text(mountpoint);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char line[4096];
	int code = 1;

	if (!f)
		return complain(mountpoint, explain(errno));
	for (bool first = true; fgets(line, sizeof(line), f); first = false) {
		if (first && strcmp(line, SUMMARY_GOOD "\n") == 0)
			code = 0;
		fputs(line, stdout);
	}
	if (ferror(f))
		code = complain(mountpoint, explain(errno));
	fclose(f);
	return fflush(stdout) ? 1 : code;
}

/* Who started this program may have told it to ignore alarms. */
static void set_alarm(void)
{
	sigset_t alarms;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	signal(SIGALRM, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &alarms, NULL);
	alarm(PATIENCE);
}

/*
 * Whoever waits for a mount that does not answer can only be killed: a child asks.
 */
int status_show(const char *mountpoint)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		return complain(mountpoint, strerror(errno));
	if (child == 0) {
		set_alarm();
		_exit(print(mountpoint));
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return complain(mountpoint, strerror(errno));
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return complain(mountpoint, "does not answer");
}
