/* SPDX-License-Identifier: MIT */
/*
 * The way into the background: fork, work, and leave the terminal when the work has begun
 * well. Until then the parent waits, so that its exit status is the outcome.
 */
#ifndef FS_BASE_DAEMON_H
#define FS_BASE_DAEMON_H

#include <stdbool.h>
#include <sys/types.h>

struct daemon {
	pid_t child; /* 0 in the child */
	int ready;   /* a pipe's end: the child writes a byte, the parent waits for it */
};

/*
 * Open what is closed of descriptors 0, 1 and 2: what is opened later must not become
 * one of them, because daemon_leave replaces them.
 */
bool daemon_reserve_fds(void);

/*
 * Fork, before any thread is started: none would survive it.  The child has a session of
 * its own.  false: it was logged.
 */
bool daemon_fork(struct daemon *d);

/*
 * In a process of the daemon: leave the terminal, and log to syslog.  In two steps, for a
 * process that may open no more files in between; false: it was logged.
 */
bool daemon_open(int *null);
void daemon_leave(int null);

/*
 * In the child: leave the terminal, and report success to the parent. false: the parent
 * has gone.
 */
bool daemon_detach(struct daemon *d);

/*
 * In the parent: wait until the child is detached, then 0, or has ended without, then its
 * exit code; -1 when it died of a signal, which was logged.
 */
int daemon_await(struct daemon *d);

#endif
