/* SPDX-License-Identifier: MIT */
/*
 * The clock is in a file of its own, so that the tests of the cache can link another one.
 */
#include "clock.h"
#include <time.h>

uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}
