/* SPDX-License-Identifier: MIT */
/*
 * The limits and the usage of the memory cgroup of this process and of the cgroups above
 * it, version 1 or 2.  Files are opened once and read at each call, so that it works in a
 * sandbox where nothing may be opened any more.
 */
#ifndef FS_SERVER_CGROUP_H
#define FS_SERVER_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#define CGROUP_LEVELS 16
#define CGROUP_NO_LIMIT UINT64_MAX

struct cgroup_level {
	int limits[2]; /* the hard limit; memory.high (version 2), else -1 */
	int usage;
	int stat;
};

struct cgroup {
	struct cgroup_level levels[CGROUP_LEVELS]; /* the process's own first */
	unsigned count;       /* 0: no cgroup, or its files cannot be read */
	const char *inactive; /* the name in stat of the page cache that is not in use */
	int directory;        /* of the process's own cgroup, or -1 */
};

/* ROOT is put before all paths; "" except in tests. */
void cgroup_open(struct cgroup *c, const char *root);
void cgroup_close(struct cgroup *c);

/* The smallest limit of all levels, in bytes, or CGROUP_NO_LIMIT. */
uint64_t cgroup_limit(const struct cgroup *c);

/*
 * True if the usage of a level is above PERCENT of its limit.  Page cache that is not in
 * use does not count: the kernel drops it before it refuses memory.
 */
bool cgroup_is_full(const struct cgroup *c, unsigned percent);

#endif
