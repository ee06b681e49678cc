/* SPDX-License-Identifier: MIT */
/*
 * The process that was started.  It keeps its privileges and does little with them: it
 * opens the archives for the server, which has no privileges, watches the sources, takes
 * signals, unmounts, and reports to the service manager.
 */
#ifndef FS_MOUNT_SUPERVISOR_H
#define FS_MOUNT_SUPERVISOR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "fs/base/daemon.h"
#include "settings.h"

struct supervisor_options {
	const struct strings *sources; /* absolute */
	const struct strings *preload; /* patterns */
	const char *mountpoint;
	unsigned poll;         /* seconds between scans of the sources; 0: at events */
	unsigned idle;         /* seconds without use until it is unmounted; 0: never */
	struct daemon *daemon; /* detached when the mount works; NULL: foreground */
};

/* A server process.  Its exit status is an enum end. */
struct supervised {
	pid_t pid;
	int link; /* closed by supervise */
};

/*
 * Block SIGTERM, SIGINT, SIGHUP and SIGCHLD, which `supervise` reads, and ignore SIGPIPE
 * and SIGXFSZ.  Call it before the server is forked, so that no signal is lost.
 */
void supervisor_block_signals(void);

/* Run until the server has ended, or serves only open files still.  Logs every error. */
enum end supervise(const struct supervised *server, const struct supervisor_options *o);

#endif
