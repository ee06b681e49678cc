/* SPDX-License-Identifier: MIT */
/*
 * A cache of open chunk tables of chunked entries: the most recently used stay open.
 * Thread-safe.
 */
#ifndef FS_CONTENT_CHUNK_TABLES_H
#define FS_CONTENT_CHUNK_TABLES_H

#include <pthread.h>
#include "fs/tree/origin.h"

struct table {
	struct table *next;
	struct origin_entry what; /* with a reference */
	unsigned pins;
	struct kp_chunks *chunks;
};

struct chunk_tables {
	pthread_mutex_t lock; /* guards everything below */
	struct table *first;  /* most recently used first */
};

void chunk_tables_init(struct chunk_tables *ts);

/* Close all tables.  Every chunk_tables_get must have had its chunk_tables_put. */
void chunk_tables_fini(struct chunk_tables *ts);

/*
 * The table of WHAT, open until chunk_tables_put.  OUT_OF_MEMORY, or the error of
 * kp_chunks_open.
 */
kpack_error_t chunk_tables_get(struct chunk_tables *ts, struct origin_entry what,
			       struct table **out, struct kpackx_error *why);
void chunk_tables_put(struct chunk_tables *ts, struct table *t);

/* Close the tables of O, which is idle; a table in use is closed by chunk_tables_put. */
void chunk_tables_forget(struct chunk_tables *ts, const struct origin *o);

#endif
