/* SPDX-License-Identifier: MIT */
/* The time by which waiting is measured: nobody sets it. */
#ifndef FS_BASE_CLOCK_H
#define FS_BASE_CLOCK_H

#include <stdint.h>

/* A time that does not come. */
#define CLOCK_NEVER INT64_MAX

/* Milliseconds. */
int64_t clock_ms(void);

#endif
