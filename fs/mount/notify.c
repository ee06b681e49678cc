/* SPDX-License-Identifier: MIT */
/*
 * A pipe tells the outcome to the process in the foreground: the child writes one byte when
 * the mount works.  If the child ends before, the parent reads the end of the pipe and
 * passes the child's exit status on.  The service manager gets a datagram for each message.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "notify.h"

/* --- the background ------------------------------------------------------------------- */

bool daemon_reserve_fds(void)
{
	for (int fd = 0; fd < 3; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) {
			log_about(LOG_ERR, "/dev/null", strerror(errno));
			return false;
		}
	}
	return true;
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
	bool notified;
	int null;

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

/* --- the service manager -------------------------------------------------------------- */

static struct {
	struct sockaddr_un address;
	socklen_t size; /* 0: there is no manager */
	uint64_t watchdog;
} manager;

void notify_begin(void)
{
	const char *path = secure_getenv("NOTIFY_SOCKET");
	const char *usec = secure_getenv("WATCHDOG_USEC"),
		   *pid = secure_getenv("WATCHDOG_PID");
	size_t n = path ? strlen(path) : 0;

	/* "@" stands for the NUL of an abstract address. */
	if (n > 1 && (path[0] == '/' || path[0] == '@') &&
	    n < sizeof(manager.address.sun_path)) {
		manager.address.sun_family = AF_UNIX;
		memcpy(manager.address.sun_path, path, n);
		if (path[0] == '@')
			manager.address.sun_path[0] = '\0';
		manager.size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
		/* the watchdog may be meant for another process */
		if (usec && (!pid || strtoll(pid, NULL, 10) == getpid()))
			manager.watchdog = strtoull(usec, NULL, 10);
	}
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

bool notify_is_heard(void)
{
	return manager.size != 0;
}

uint64_t notify_watchdog_usec(void)
{
	return manager.watchdog;
}

void notify(const char *assignments, const char *status)
{
	char text[2048];
	size_t n = (size_t)snprintf(text, sizeof(text), "%s", assignments);
	int fd;

	if (manager.size == 0)
		return;
	if (status)
		snprintf(text + n, sizeof(text) - n, "STATUS=%s", status);
	for (char *c = text + n; *c; c++)
		if (*c == '\n')
			*c = ' ';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* if the manager has gone, we cannot do anything */
	(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL,
		      (const struct sockaddr *)&manager.address, manager.size);
	close(fd);
}

void notify_ready(const char *status)
{
	char ready[64];

	snprintf(ready, sizeof(ready), "READY=1\nMAINPID=%ld\n", (long)getpid());
	notify(ready, status);
}

void notify_reloading(void)
{
	char reloading[96];

	snprintf(reloading, sizeof(reloading),
		 "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\n", clock_ns() / 1000);
	notify(reloading, NULL);
}
