/* SPDX-License-Identifier: MIT */
/* Option --status: prints the status of a mount of another process. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "core/base/alloc.h"
#include "core/base/text.h"
#include "mount.h"
#include "fs/fuse/texts.h"
#include "core/archive/naming.h"

#define PATIENCE 5000               /* milliseconds */
#define FUSE_FILE_SYSTEM 0x65735546 /* f_type of statfs(2) */
#define STATUS_LINE 4096            /* bytes of a line that are read at once */
#define CLOSE_RANGE_CALL 436        /* its function is newer, in libc */

static int fail_status(const char *mountpoint, const char *why)
{
	log_about(LOG_ERR, mountpoint, why);
	return 1;
}

#define DIED "its daemon has died; unmount it with fusermount3 -u or umount"

/* The reasons why the status of a mount cannot be read, by errno. */
static const struct {
	int err;
	const char *text;
} meanings[] = {
	{ENOTCONN, DIED},
	{ECONNABORTED, DIED}, /* while it was asked */
	{EACCES, "only the user who mounted it has access: it has no allow_other"},
	{ENOTDIR, "no kpackfs is mounted here"},
	{ENOENT, "no kpackfs is mounted here"},
};

/* Exit statuses of the child; any other is an errno. */
enum { WELL = 0, NOT_WELL = 255 };

/* Copy the status text of the mount, if it is a FUSE file system, to OUT. */
static int copy_status(const char *mountpoint, FILE *out)
{
	KP_AUTO_CLOSE int dir = open(mountpoint, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char line[STATUS_LINE], clean[4 * STATUS_LINE];
	int code = NOT_WELL, fd;
	struct statfs fs;
	FILE *f;

	if (dir < 0 || fstatfs(dir, &fs))
		return errno;
	if (fs.f_type != FUSE_FILE_SYSTEM)
		return ENOTDIR;
	fd = openat(dir, KP_CONTROL_NAME "/status", O_RDONLY | O_CLOEXEC);
	f = fd < 0 || !out ? NULL : fdopen(fd, "r");
	if (!f)
		return errno;
	for (bool first = true; fgets(line, sizeof(line), f); first = false) {
		size_t n = strcspn(line, "\n");
		bool whole = line[n] == '\n';

		line[n] = '\0';
		if (first && whole && strcmp(line, SUMMARY_GOOD) == 0)
			code = WELL;
		/* it may come from any file system */
		fprintf(out, "%s%s",
			kp_message_escape(kp_span_str(line), clean, sizeof(clean)),
			whole ? "\n" : "");
	}
	if (ferror(f))
		code = errno;
	fclose(f);
	return fflush(out) ? errno : code;
}

/*
 * A child reads the status.  A process that waits for a mount that does not answer can
 * only be killed, and not even that if the server has stopped while it had the request.
 */
int status_show(const char *mountpoint)
{
	int64_t end = clock_ms() + PATIENCE, left;
	int ends[2], status, code;
	char text[4096];
	ssize_t n = -1;
	pid_t child;

	/* The program's parent may have set SIGCHLD to be ignored. */
	signal(SIGCHLD, SIG_DFL);
	if (pipe2(ends, O_CLOEXEC) || (child = fork()) < 0)
		return fail_status(mountpoint, strerror(errno));
	if (child == 0) {
		/* It ends with its parent, or as soon as possible after it.  It closes all
		 * other descriptors, so that no program waits for those that it inherited. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], 0);
		syscall(CLOSE_RANGE_CALL, 1U, ~0U, 0U);
		_exit(copy_status(mountpoint, fdopen(0, "w")));
	}
	close(ends[1]);
	while ((left = end - clock_ms()) > 0) {
		struct pollfd p = {ends[0], POLLIN, 0};

		if (poll(&p, 1, (int)left) <= 0)
			continue;
		n = read(ends[0], text, sizeof(text));
		if (n <= 0)
			break;
		fwrite(text, 1, (size_t)n, stdout);
	}
	if (n != 0)
		return fail_status(mountpoint, "does not answer");
	if (waitpid(child, &status, 0) < 0 || !WIFEXITED(status))
		return fail_status(mountpoint,
				   "the process that reads the status was killed");
	code = WEXITSTATUS(status);
	for (size_t i = 0; i < KP_COUNT(meanings); i++)
		if (meanings[i].err == code)
			return fail_status(mountpoint, meanings[i].text);
	if (code != WELL && code != NOT_WELL)
		return fail_status(mountpoint, strerror(code));
	return fflush(stdout) || code == NOT_WELL;
}
