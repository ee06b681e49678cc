/* SPDX-License-Identifier: MIT */
/* Counting for content_stats: how long decodes took, and why they failed. */
#ifndef FS_CONTENT_COUNTERS_H
#define FS_CONTENT_COUNTERS_H

#include <stdbool.h>
#include "content.h"

/* Count a decode of SIZE bytes that began at SINCE, a time of clock_ns. */
void counters_decode(struct content_stats *s, uint64_t size, uint64_t since);

/* Count a decode that failed with WHY; CHANGED: because its archive was written to. */
void counters_fault(struct content_stats *s, const struct kpackx_error *why,
		    bool changed);

#endif
