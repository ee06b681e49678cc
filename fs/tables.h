/* SPDX-License-Identifier: MIT */
/*
 * Open chunk tables of a view's chunked entries: the most recently used stay open.
 * Thread-safe.
 */
#ifndef FS_TABLES_H
#define FS_TABLES_H

#include <pthread.h>
#include "view.h"

struct table {
	struct table *next;
	uint32_t file;
	unsigned pins;
	struct kp_chunks *chunks;
};

struct tables {
	const struct kp_view *view;
	pthread_mutex_t lock;
	struct table *first; /* most recently used first */
};

/* VIEW is borrowed. */
void tables_init(struct tables *ts, const struct kp_view *view);

/* Close all.  Each must have been put back. */
void tables_fini(struct tables *ts);

/*
 * The table of FILE, open until it is put back.  OUT_OF_MEMORY, or why kp_chunks_open
 * failed.
 */
kpack_error_t tables_get(struct tables *ts, uint32_t file, struct table **out,
			 struct kpackx_error *why);
void tables_put(struct tables *ts, struct table *t);

#endif
