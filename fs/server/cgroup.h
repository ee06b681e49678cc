/* SPDX-License-Identifier: MIT */
/*
 * The memory cgroup of this process and those above it, version 1 or 2: what they allow
 * and what they use.  Files are opened once and read as often as asked, so that it goes on
 * where nothing may be opened any more.
 */
#ifndef FS_SERVER_CGROUP_H
#define FS_SERVER_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#define CGROUP_LEVELS 16
#define CGROUP_NO_LIMIT UINT64_MAX

struct cgroup_level {
	int limits[2]; /* the hard one; version 2's memory.high, else -1 */
	int usage;
	int stat;
};

struct cgroup {
	struct cgroup_level levels[CGROUP_LEVELS]; /* its own first */
	unsigned count;       /* 0: it is in none, or they cannot be read */
	const char *inactive; /* the name in stat of the page cache that is not in use */
	int directory;        /* its own, or -1 */
};

/* ROOT is put before all paths; "" but for tests. */
void cgroup_open(struct cgroup *c, const char *root);
void cgroup_close(struct cgroup *c);

/* The smallest limit of all levels, in bytes, or CGROUP_NO_LIMIT. */
uint64_t cgroup_limit(const struct cgroup *c);

/*
 * Is some level's usage above PERCENT of its limit?  Page cache that nobody uses does not
 * count: the kernel drops it before it refuses anything.
 */
bool cgroup_is_full(const struct cgroup *c, unsigned percent);

#endif
