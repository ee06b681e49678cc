/* SPDX-License-Identifier: MIT */
/*
 * Detects that memory is short, in the system or in the cgroup of this process: then the
 * cache of decoded bytes has to shrink.
 */
#ifndef FS_MOUNT_MEMORY_PRESSURE_H
#define FS_MOUNT_MEMORY_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

struct pressure;

/*
 * Use no more than PERCENT of the budget from now on; 100: all of it.  Called by one
 * thread, when PERCENT changes.
 */
typedef void pressure_shrink(void *user, unsigned percent);

/*
 * Open all files that will be read.  ROOT is put before all paths; "" except in tests.  A
 * system without these files never reports pressure.  NULL: out of memory; logged.
 */
struct pressure *pressure_open(const char *root);

/* Stop the thread and free P.  NULL is fine. */
void pressure_free(struct pressure *p);

/*
 * WANTED bytes, or less if the cgroup has a limit: as much as leaves room for everything
 * else, but at least 4 MiB.
 */
uint64_t pressure_budget(const struct pressure *p, uint64_t wanted);

/*
 * Start a thread that calls SHRINK when memory becomes short, and again when it has not
 * been short for a while.  false: no thread; logged.
 */
bool pressure_start(struct pressure *p, pressure_shrink *shrink, void *user);

/*
 * The percentage of the budget to use from NOW, in seconds, on; the thread calls this
 * each time it wakes.  STALLED: the kernel reports that tasks had to wait for memory.
 */
unsigned pressure_percent(struct pressure *p, int64_t now, bool stalled);

#endif
