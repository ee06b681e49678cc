/* SPDX-License-Identifier: MIT */
/*
 * A mount, from its command line to its end.
 *
 * It has two processes.  The supervisor is the one that was started: it keeps its privileges
 * and does little with them.  It opens the archives for the server, watches the sources,
 * takes signals, unmounts, and reports to the service manager.  The server mounts, drops its
 * privileges, and answers requests until the mount ends.
 */
#ifndef FS_MOUNT_MOUNT_H
#define FS_MOUNT_MOUNT_H

#include <fuse_opt.h>
#include "fs/tree/edition.h"
#include "notify.h"

/* The outcomes of a run; main.c has their exit codes. */
enum end { OK, USAGE, SYSTEM, NO_MOUNT };

struct strings {
	char **list;
	size_t count;
};

struct settings {
	struct strings sources; /* during parsing, the mount point is the last */
	struct strings more_sources;
	struct strings preload; /* patterns */
	char *mountpoint;
	int place;             /* the mount point, open, if root mounts; else 0 */
	struct fuse_args args; /* for libfuse */
	struct kp_choice arches;
	char *subdir;   /* clean; NULL: the whole tree */
	char *topology; /* directory to find GPUs in; NULL: the driver's */
	struct tree_options look;
	uint64_t cache_size;
	unsigned threads, max_threads;
	unsigned poll, idle_timeout; /* seconds; 0: off */
	bool foreground, debug, single, clone_fd, always_open, io_uring, no_sandbox,
		no_ahead, xattr, bundles;
	bool shared; /* users other than the one who mounts have access */
	bool auto_unmount;
	bool nonempty; /* cover whatever files the mount point has */
	bool has_fsname, has_subtype;
	bool help, version;
	bool status;       /* print the mount point's status; there are no sources */
	bool in_place;     /* the mount point is a tree: see in_place_mount */
	bool undo;         /* with in_place: there are no sources */
	bool helper, fake; /* called as mount.kpackfs; with -f as such */
};

/*
 * Fill S, which is all zeros, from a command line, whose strings may be changed.  Paths
 * become absolute.  With help or version there is no mount point.  Returns OK, or another
 * end, and has logged the reason; the caller frees S in any case.  -v and -q take effect
 * at once.
 */
enum end settings_parse(struct settings *s, int argc, char **argv);
void settings_free(struct settings *s);

/* Close the mount point, so that what it is in can be unmounted. */
void settings_leave_place(struct settings *s);

/* Print the help or the versions.  0, or 1 if writing failed. */
int settings_show(const struct settings *s);

/*
 * Print the status text of the mount at MOUNTPOINT.  0: it is healthy; 1: it is not, or
 * MOUNTPOINT is no mount of ours, or it does not answer; the last two are logged.
 */
int status_show(const char *mountpoint);

/*
 * Mount the sources of S wherever the tree S->mountpoint lacks files of them (in_place.c), with
 * MOUNT, which makes one mount in the background and returns an exit status.  Prints each
 * place.  What is mounted already stays; if a mount fails, all that this call made is unmounted
 * again.  Every failure is logged.
 */
enum end in_place_mount(struct settings *s, int (*mount)(struct settings *s));

/*
 * Unmount all that kpackfs has mounted in the tree, lazily what is in use.  Nothing mounted is a
 * success.
 */
enum end in_place_undo(struct settings *s);

/*
 * Block SIGTERM, SIGINT, SIGHUP and SIGCHLD, which `supervise` reads, and ignore SIGPIPE
 * and SIGXFSZ.  Call it before the server is forked, so that no signal is lost.
 */
void supervisor_block_signals(void);

/*
 * Supervise SERVER, a process whose exit status is an enum end, over LINK, which is closed,
 * until it has ended, or serves only open files still.  DAEMON is detached when the mount
 * works; NULL: it stays in the foreground.  Logs every error.
 */
enum end supervise(const struct settings *s, pid_t server, int link,
		   struct daemon *daemon);

/*
 * Be the server: serve the surveys that come over LINK, which is closed in the end.  When the
 * mount works, the supervisor is told.  Signals that ask for an end or a reload are passed on
 * to it.
 */
enum end serve(struct settings *s, int link);

/*
 * Whether each file of the directory DIR, which has the name PATH in messages, is in E at
 * the same path, with the same size and, if its entry has a hash, the same bytes; else
 * false, after reporting the first file for which this does not hold.  Mounts below DIR
 * are not looked at, nor a DIR that a FUSE file system shows.
 */
bool covered_check(int dir, const char *path, const struct edition *e);

#endif
