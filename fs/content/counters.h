/* SPDX-License-Identifier: MIT */
/* Counting for content_stats: how long decodes took, and why they failed. */
#ifndef FS_CONTENT_COUNTERS_H
#define FS_CONTENT_COUNTERS_H

#include <stdbool.h>
#include "content.h"

/* Nanoseconds of a clock that only goes forward. */
uint64_t counters_now(void);

/* SIZE bytes were decoded since SINCE, by counters_now. */
void counters_decode(struct content_stats *s, uint64_t size, uint64_t since);

/* A decode failed with WHY; CHANGED: because its archive was written to. */
void counters_fault(struct content_stats *s, const struct kpackx_error *why,
		    bool changed);

#endif
