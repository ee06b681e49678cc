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

static const char *explain_error(int err)
{
	for (size_t i = 0; i < KP_COUNT(meanings); i++)
		if (meanings[i].err == err)
			return meanings[i].text;
	return strerror(err);
}

/* Open the status text of the mount, if it is a FUSE file system.  -1: see errno. */
static int open_text(const char *mountpoint)
{
	struct statfs fs;
	int dir = open(mountpoint, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = -1;

	if (dir >= 0 && fstatfs(dir, &fs) == 0) {
		errno = ENOTDIR;
		if (fs.f_type == FUSE_FILE_SYSTEM)
			fd = openat(dir, KP_CONTROL_NAME "/status", O_RDONLY | O_CLOEXEC);
	}
	if (dir >= 0)
		close(dir);
	return fd;
}

/* Print LINE, which may come from any file system, and its newline if it has one. */
static void put_line(char *line, FILE *out)
{
	char clean[4 * STATUS_LINE];
	size_t n = strcspn(line, "\n");
	bool whole = line[n] == '\n';

	line[n] = '\0';
	fputs(kp_message_escape(kp_span_str(line), clean, sizeof(clean)), out);
	if (whole)
		fputc('\n', out);
}

/* Exit statuses of the child; any other is an errno. */
enum { WELL = 0, NOT_WELL = 255 };

/* Copy the mount's status text to OUT.  Returns the exit status. */
static int copy_status(const char *mountpoint, FILE *out)
{
	int fd = open_text(mountpoint);
	FILE *f = fd < 0 || !out ? NULL : fdopen(fd, "r");
	char line[STATUS_LINE];
	int code = NOT_WELL;

	if (!f)
		return errno;
	for (bool first = true; fgets(line, sizeof(line), f); first = false) {
		if (first && strcmp(line, SUMMARY_GOOD "\n") == 0)
			code = WELL;
		put_line(line, out);
	}
	if (ferror(f))
		code = errno;
	fclose(f);
	return fflush(out) ? errno : code;
}

/*
 * Run the child.  It ends with its parent, or as soon as possible after it.  It closes
 * all other descriptors, so that no program waits for those that it inherited.
 */
static _Noreturn void run_child(const char *mountpoint, int out)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(out, 0);
	syscall(CLOSE_RANGE_CALL, 1U, ~0U, 0U);
	_exit(copy_status(mountpoint, fdopen(0, "w")));
}

/* Wait until the time END for bytes from FD, or for its end; false: neither came. */
static bool wait_for_input(int fd, int64_t end)
{
	struct pollfd p = {fd, POLLIN, 0};
	int64_t left = end - clock_ms();

	while (left > 0 && poll(&p, 1, (int)left) < 0 && errno == EINTR)
		left = end - clock_ms();
	return p.revents != 0;
}

/* Print the bytes that come from FD.  false: its end did not come in time. */
static bool print_output(int fd)
{
	int64_t end = clock_ms() + PATIENCE;
	char text[4096];
	ssize_t n = -1;

	while (wait_for_input(fd, end) && (n = read(fd, text, sizeof(text))) > 0)
		fwrite(text, 1, (size_t)n, stdout);
	return n == 0;
}

/*
 * A child reads the status.  A process that waits for a mount that does not answer can
 * only be killed, and not even that if the server has stopped while it had the request.
 */
int status_show(const char *mountpoint)
{
	int ends[2], status, code;
	pid_t child;

	/* The program's parent may have set SIGCHLD to be ignored. */
	signal(SIGCHLD, SIG_DFL);
	if (pipe2(ends, O_CLOEXEC) || (child = fork()) < 0)
		return fail_status(mountpoint, strerror(errno));
	if (child == 0)
		run_child(mountpoint, ends[1]);
	close(ends[1]);
	if (!print_output(ends[0]))
		return fail_status(mountpoint, "does not answer");
	if (waitpid(child, &status, 0) < 0 || !WIFEXITED(status))
		return fail_status(mountpoint,
				   "the process that reads the status was killed");
	code = WEXITSTATUS(status);
	if (code != WELL && code != NOT_WELL)
		return fail_status(mountpoint, explain_error(code));
	return fflush(stdout) || code == NOT_WELL;
}
