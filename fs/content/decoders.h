/* SPDX-License-Identifier: MIT */
/*
 * Decoders of entries.  A few are kept for reuse, because a new one allocates its tables,
 * its window and room for stored bytes, and touches all of that memory for the first time.
 * Thread-safe; a decoder belongs to the thread that opened it.
 */
#ifndef FS_CONTENT_DECODERS_H
#define FS_CONTENT_DECODERS_H

#include <pthread.h>
#include "core/archive/entry.h"
#include "fs/tree/origin.h"

enum { DECODERS_KEPT = 4 };

struct decoders {
	uint64_t keep_max;    /* bytes of the largest decoder that may be kept */
	pthread_mutex_t lock; /* guards everything below */
	struct {
		struct kp_reader *decoder;
		uint64_t bytes;
	} kept[DECODERS_KEPT]; /* the one used last at the end */
	unsigned n_kept;
};

/* Decoders of more than KEEP_MAX bytes are not kept. */
void decoders_init(struct decoders *ds, uint64_t keep_max);
void decoders_fini(struct decoders *ds);

/* As kp_reader_open; a kept decoder that has more than MOST bytes is not used. */
kpack_error_t decoders_open(struct decoders *ds, struct origin_entry what,
			    enum kp_read_how how, uint64_t most, struct kp_reader **out,
			    struct kpackx_error *why);

/* As kp_reader_close: D is not used any more.  NULL is fine. */
void decoders_close(struct decoders *ds, struct kp_reader *d);

/* Free the kept decoders. */
void decoders_trim(struct decoders *ds);

#endif
