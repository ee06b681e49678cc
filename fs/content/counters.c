/* SPDX-License-Identifier: MIT */
#include "counters.h"
#include "core/archive/digest.h"
#include "fs/base/clock.h"

const double content_time_bounds[CONTENT_TIMES] = {
	0.0001, 0.00025, 0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1, 2.5, 10,
};

const char *const content_fault_names[CONTENT_FAULTS] = {
	[CONTENT_UNREADABLE] = "read",  [CONTENT_CORRUPT] = "decode",
	[CONTENT_MISMATCH] = "hash",    [CONTENT_CHANGED] = "changed",
	[CONTENT_NO_MEMORY] = "memory",
};

void counters_decode(struct content_stats *s, uint64_t size, uint64_t since)
{
	double seconds = (double)(clock_ns() - since) / 1e9;
	size_t i = 0;

	while (i < CONTENT_TIMES && seconds > content_time_bounds[i])
		i++;
	s->decodes++;
	s->bytes_decoded += size;
	s->decode_seconds += seconds;
	s->decode_times[i]++;
}

void counters_fault(struct content_stats *s, const struct kpackx_error *why, bool changed)
{
	enum content_fault fault = CONTENT_CORRUPT;

	if (changed)
		fault = CONTENT_CHANGED;
	else if (why->code == KPACK_ERROR_IO_ERROR)
		fault = CONTENT_UNREADABLE;
	else if (why->code == KPACK_ERROR_OUT_OF_MEMORY)
		fault = CONTENT_NO_MEMORY;
	else if (kp_digest_differed(why))
		fault = CONTENT_MISMATCH;
	s->errors++;
	s->faults[fault]++;
}
