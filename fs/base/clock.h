/* SPDX-License-Identifier: MIT */
/* A monotonic clock: setting the system's time does not affect it. */
#ifndef FS_BASE_CLOCK_H
#define FS_BASE_CLOCK_H

#include <stdint.h>

/* A time of clock_ms that never comes. */
#define CLOCK_NEVER INT64_MAX

/* The time now, in nanoseconds; tests of the cache have a clock of their own. */
uint64_t clock_ns(void);

/* The same in milliseconds. */
static inline int64_t clock_ms(void)
{
	return (int64_t)(clock_ns() / 1000000);
}

/* And in seconds. */
static inline int64_t clock_seconds(void)
{
	return (int64_t)(clock_ns() / 1000000000);
}

#endif
