/* SPDX-License-Identifier: MIT */
/*
 * A clock for measuring waits: monotonic, so setting the system's time does not affect
 * it.
 */
#ifndef FS_BASE_CLOCK_H
#define FS_BASE_CLOCK_H

#include <stdint.h>

/* A time that never comes. */
#define CLOCK_NEVER INT64_MAX

/* The time now, in milliseconds. */
int64_t clock_ms(void);

#endif
