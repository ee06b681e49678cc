/* SPDX-License-Identifier: MIT */
/*
 * A pipe tells the outcome: the child writes one byte when the mount works.  If the child
 * ends before, the parent reads the end of the pipe and passes the child's exit status on.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon.h"
#include "log.h"

bool daemon_reserve_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd < 3);
	if (fd > 2)
		close(fd);
	return fd > 2;
}

bool daemon_fork(struct daemon *d)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) || (d->child = fork()) < 0) {
		log_about(LOG_ERR, "fork", strerror(errno));
		return false;
	}
	d->ready = ends[d->child == 0];
	close(ends[d->child != 0]);
	if (d->child == 0)
		setsid();
	return true;
}

bool daemon_open(int *null)
{
	*null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (*null < 0)
		log_about(LOG_ERR, "/dev/null", strerror(errno));
	else if (chdir("/"))
		log_print(LOG_WARNING, "cannot change to /");
	return *null >= 0;
}

void daemon_leave(int null)
{
	log_to_syslog();
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
}

bool daemon_detach(struct daemon *d)
{
	int null;
	bool notified;

	if (!daemon_open(&null))
		return false;
	daemon_leave(null);
	notified = write(d->ready, "", 1) == 1;
	close(d->ready);
	if (!notified)
		log_print(LOG_ERR, "the parent process ended before the mount was ready");
	return notified;
}

int daemon_await(struct daemon *d)
{
	char byte;
	int status;
	ssize_t n;

	do {
		n = read(d->ready, &byte, 1);
	} while (n < 0 && errno == EINTR);
	close(d->ready);
	if (n == 1)
		return 0;
	while (waitpid(d->child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	log_print(LOG_ERR, "the daemon died of signal %d", WTERMSIG(status));
	return -1;
}
