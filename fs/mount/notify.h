/* SPDX-License-Identifier: MIT */
/*
 * Tells whoever started kpackfs that the mount works: the process before it went into the
 * background, and the service manager.
 *
 * Into the background: the process forks, and the child leaves the terminal when its work
 * has begun well.  Until then the parent waits, so that its exit status is the outcome.
 *
 * To a service manager, if there is one, go the messages of sd_notify(3).
 */
#ifndef FS_MOUNT_NOTIFY_H
#define FS_MOUNT_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct daemon {
	pid_t child; /* 0 in the child */
	int ready;   /* end of a pipe: the child writes a byte, the parent waits for it */
};

/*
 * Open /dev/null as each of the descriptors 0, 1 and 2 that is closed: no file that is
 * opened later may get one of these numbers, because daemon_leave replaces them.  false:
 * see errno.
 */
bool daemon_reserve_fds(void);

/*
 * Fork.  Call it before any thread is started: threads do not survive a fork.  The child
 * has a session of its own.  false: it failed; logged.
 */
bool daemon_fork(struct daemon *d);

/*
 * In a process of the daemon: leave the terminal, and log to syslog.  In two steps, for a
 * process that loses the right to open files between them.  false: it failed; logged.
 */
bool daemon_open(int *null);
void daemon_leave(int null);

/*
 * In the child: leave the terminal, and report success to the parent.  false: the parent
 * has gone, or /dev/null cannot be opened; logged.
 */
bool daemon_detach(struct daemon *d);

/*
 * In the parent: wait for the child.  0: it detached; -1: a signal killed it, which was
 * logged, or waiting failed; else the exit code of a child that ended before it detached.
 */
int daemon_await(struct daemon *d);

/*
 * Take the manager's address from the environment, and remove it there, so that programs
 * that we start do not see it.  Called once, by the process that the manager is to know.
 */
void notify_begin(void);

/* True if there is a manager that asked for messages. */
bool notify_is_heard(void);

/* Send ASSIGNMENTS, lines of sd_notify(3), and STATUS, a line for people; NULL: none. */
void notify(const char *assignments, const char *status);
void notify_ready(const char *status);
void notify_reloading(void);

/*
 * The longest time between two messages WATCHDOG=1, in microseconds; 0: not expected.
 */
uint64_t notify_watchdog_usec(void);

#endif
