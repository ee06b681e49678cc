/* SPDX-License-Identifier: MIT */
/*
 * Open chunk tables of chunked entries: the most recently used stay open.
 * Thread-safe.
 */
#ifndef FS_TABLES_H
#define FS_TABLES_H

#include <pthread.h>
#include "fs/tree/origin.h"

struct table {
	struct table *next;
	struct origin_entry what; /* with a reference */
	unsigned pins;
	struct kp_chunks *chunks;
};

struct tables {
	pthread_mutex_t lock;
	struct table *first; /* most recently used first */
};

void tables_init(struct tables *ts);

/* Close all.  Each must have been put back. */
void tables_fini(struct tables *ts);

/*
 * The table of WHAT, open until it is put back.  OUT_OF_MEMORY, or why kp_chunks_open
 * failed.
 */
kpack_error_t tables_get(struct tables *ts, struct origin_entry what, struct table **out,
			 struct kpackx_error *why);
void tables_put(struct tables *ts, struct table *t);

/* Close the tables of O, which is idle; those in use are closed when they are put back. */
void tables_forget(struct tables *ts, const struct origin *o);

#endif
