/* SPDX-License-Identifier: MIT */
/* The settings from the command line: options, sources, mount point. */
#ifndef FS_MOUNT_SETTINGS_H
#define FS_MOUNT_SETTINGS_H

#include <fuse_opt.h>
#include "fs/tree/arch_filter.h"
#include "fs/tree/tree.h"

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
	bool in_place;     /* the mount point is a tree; see in_place.h */
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

#endif
