/* SPDX-License-Identifier: MIT */
/* The clock by which memory is kept and decodes are measured. */
#ifndef FS_CONTENT_CLOCK_H
#define FS_CONTENT_CLOCK_H

#include <stdint.h>

/* Nanoseconds of a monotonic clock. */
uint64_t clock_now(void);

#endif
