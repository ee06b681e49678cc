/* SPDX-License-Identifier: MIT */
/*
 * Log lines about entries that cannot be read: one for each entry, however often it is
 * read, and a bounded number of lines in a period. A thread, begun with the first
 * suppressed line, logs the number of suppressed lines when the period is over. Without
 * the thread, the number stands in the next line.
 *
 * Thread-safe.
 */
#ifndef FS_SERVER_READ_ERROR_LOG_H
#define FS_SERVER_READ_ERROR_LOG_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>
#include "fs/tree/origin.h"

/* Entries that are known to have been complained of; with more, it begins anew. */
#define COMPLAINTS_KNOWN 4096

struct read_error_log {
	unsigned most;  /* lines in SECONDS */
	time_t seconds; /* from the first of them */
	pthread_mutex_t lock;
	time_t since;
	unsigned lines;
	uint64_t more;                        /* not shown */
	uint64_t known[2 * COMPLAINTS_KNOWN]; /* a hash table of entries; 0: free */
	size_t n_known;

	pthread_t teller;
	bool has_teller;
	bool over;             /* it is to end */
	pthread_cond_t wanted; /* there is a number to log, or the log ends */
};

void read_error_log_init(struct read_error_log *cs, unsigned most, time_t seconds);

/* Tell of what was not shown, and be of no more use. */
void read_error_log_fini(struct read_error_log *cs);

/* WHAT cannot be read, and WHY: its archive, key and architecture, and the reason. */
void read_error_log_add(struct read_error_log *cs, struct origin_entry what,
			const struct kpackx_error *why);

#endif
