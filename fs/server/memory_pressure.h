/* SPDX-License-Identifier: MIT */
/*
 * Whether memory is short, here or in the cgroup of this process: then less of it is to be
 * kept for reading again.
 */
#ifndef FS_SERVER_MEMORY_PRESSURE_H
#define FS_SERVER_MEMORY_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

struct pressure;

/*
 * Have no more than PERCENT of the budget from now on; 100: all of it.  Called by one
 * thread, when it changes.
 */
typedef void pressure_shrink(void *user, unsigned percent);

/*
 * Open all files that will be read. ROOT is put before all paths; "" but for tests. A
 * system without these files has no pressure. NULL: out of memory, which was logged.
 */
struct pressure *pressure_open(const char *root);

/* Stop, free.  NULL is fine. */
void pressure_free(struct pressure *p);

/*
 * WANTED bytes, or what of them fits the limit of the cgroup with room for everything
 * else: at least 4 MiB.
 */
uint64_t pressure_budget(const struct pressure *p, uint64_t wanted);

/* Start a thread that calls SHRINK when memory becomes short, and when it has not been
 * for a while.  false: no thread, which was logged. */
bool pressure_start(struct pressure *p, pressure_shrink *shrink, void *user);

/*
 * What the thread does each time it wakes: the percentage of the budget to have at NOW, in
 * seconds; STALLED: the kernel says that somebody waited for memory.
 */
unsigned pressure_percent(struct pressure *p, int64_t now, bool stalled);

#endif
