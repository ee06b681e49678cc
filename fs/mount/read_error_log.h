/* SPDX-License-Identifier: MIT */
/*
 * Logs entries that cannot be read: one line for each entry, however often it is read,
 * and a bounded number of lines in a period.  A thread, started at the first suppressed
 * line, logs the number of suppressed lines when the period is over.  If it cannot be
 * started, the number is logged before the next line.
 *
 * Thread-safe.
 */
#ifndef FS_MOUNT_READ_ERROR_LOG_H
#define FS_MOUNT_READ_ERROR_LOG_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>
#include "fs/tree/origin.h"

/*
 * The most entries that are remembered as logged; when they are exceeded, all are
 * forgotten.
 */
#define READ_ERRORS_KNOWN 4096

struct read_error_log {
	unsigned most;        /* lines in a period */
	time_t seconds;       /* length of a period */
	pthread_mutex_t lock; /* guards everything below */
	time_t since;         /* start of the period */
	unsigned lines;
	uint64_t more;                         /* suppressed lines */
	uint64_t known[2 * READ_ERRORS_KNOWN]; /* a hash table of entries; 0: free */
	size_t n_known;

	pthread_t thread;
	bool has_thread;
	bool over;             /* the thread must end */
	pthread_cond_t wanted; /* there is a number to log, or the log ends */
};

void read_error_log_init(struct read_error_log *cs, unsigned most, time_t seconds);

/* Log the number of suppressed lines, end the thread, and release everything. */
void read_error_log_fini(struct read_error_log *cs);

/* Log that WHAT cannot be read: its archive, key and architecture, and the reason WHY. */
void read_error_log_add(struct read_error_log *cs, struct origin_entry what,
			const struct kpackx_error *why);

#endif
