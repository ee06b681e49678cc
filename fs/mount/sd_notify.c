/* SPDX-License-Identifier: MIT */
/* One datagram for each message; the address is taken from the environment once. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "sd_notify.h"

static struct {
	struct sockaddr_un address;
	socklen_t size; /* 0: there is no manager */
	uint64_t watchdog;
} manager;

/* The watchdog's interval; 0: none, or it is meant for another process. */
static uint64_t watchdog_asked(void)
{
	const char *usec = secure_getenv("WATCHDOG_USEC"),
		   *pid = secure_getenv("WATCHDOG_PID");

	if (!usec || (pid && strtoll(pid, NULL, 10) != getpid()))
		return 0;
	return strtoull(usec, NULL, 10);
}

void notify_begin(void)
{
	const char *path = secure_getenv("NOTIFY_SOCKET");
	size_t n = path ? strlen(path) : 0;

	/* "@" stands for the NUL of an abstract address. */
	if (n > 1 && (path[0] == '/' || path[0] == '@') &&
	    n < sizeof(manager.address.sun_path)) {
		manager.address.sun_family = AF_UNIX;
		memcpy(manager.address.sun_path, path, n);
		if (path[0] == '@')
			manager.address.sun_path[0] = '\0';
		manager.size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
		manager.watchdog = watchdog_asked();
	}
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

/* Send TEXT.  Errors are ignored: if the manager has gone, we cannot do anything. */
static void send_text(const char *text)
{
	int fd;

	if (manager.size == 0)
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL,
		      (const struct sockaddr *)&manager.address, manager.size);
	close(fd);
}

/* Each line is an assignment, so newlines in STATUS become spaces. */
static void send_status(const char *before, const char *status)
{
	char text[2048];
	size_t n = (size_t)snprintf(text, sizeof(text), "%s", before);

	if (status)
		snprintf(text + n, sizeof(text) - n, "STATUS=%s", status);
	for (char *c = text + n; *c; c++)
		if (*c == '\n')
			*c = ' ';
	send_text(text);
}

bool notify_is_heard(void)
{
	return manager.size != 0;
}

void notify_ready(const char *status)
{
	char before[64];

	snprintf(before, sizeof(before), "READY=1\nMAINPID=%ld\n", (long)getpid());
	send_status(before, status);
}

void notify_status(const char *status)
{
	send_status("", status);
}

void notify_reloading(void)
{
	struct timespec now;
	char text[96];

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\n",
		 (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
	send_text(text);
}

void notify_stopping(void)
{
	send_text("STOPPING=1\nSTATUS=Unmounting\n");
}

void notify_watchdog(void)
{
	send_text("WATCHDOG=1\n");
}

uint64_t notify_watchdog_usec(void)
{
	return manager.watchdog;
}
