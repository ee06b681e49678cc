/* SPDX-License-Identifier: MIT */
/* What the command line says: options, sources, mount point. */
#ifndef FS_CLI_SETTINGS_H
#define FS_CLI_SETTINGS_H

#include <fuse_opt.h>
#include "fs/tree/arch_filter.h"
#include "fs/tree/tree.h"

/* How a run can end; main.c has the exit codes. */
enum end { OK, USAGE, SYSTEM, NO_MOUNT };

struct strings {
	char **list;
	size_t count;
};

struct settings {
	struct strings sources; /* then, until parsing is over, the mount point */
	struct strings more_sources;
	struct strings preload; /* patterns */
	char *mountpoint;
	struct fuse_args args; /* for libfuse */
	struct arches arches;
	char *subdir;   /* clean; NULL: the whole tree */
	char *topology; /* where GPUs are looked for; NULL: where the driver has them */
	struct tree_options look;
	uint64_t cache_size;
	unsigned threads, max_threads;
	unsigned poll, idle_timeout; /* seconds; 0: not */
	bool foreground, debug, single, clone_fd, always_open, io_uring, no_sandbox,
		xattr;
	bool has_fsname, has_subtype;
	bool help, version;
	bool status;       /* of the mount point; there are no sources */
	bool helper, fake; /* called as mount.kpackfs; -f there */
};

/*
 * Fill S, which is all zeros, from a command line, whose strings may be changed.  Paths
 * become absolute.  With help or version there is no mount point.  OK or another end,
 * whose reason has been logged; the caller frees S in either case.  -v and -q take
 * effect at once.
 */
enum end settings_parse(struct settings *s, int argc, char **argv);
void settings_free(struct settings *s);

/* Print what help or version asked for.  0, or 1 when it cannot be written. */
int settings_show(const struct settings *s);

#endif
