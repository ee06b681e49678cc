/* SPDX-License-Identifier: MIT */
/* Packing as one shard of several: what is not its own is taken out, the rest is recorded. */
#ifndef SHARD_RUN_H
#define SHARD_RUN_H

#include "log.h"

struct packing;

struct shard_run {
	struct shard_log *log; /* NULL: the run is not shared */
	bool *mine;            /* per entry of the scan */
	bool hosts;            /* volumes may be others when all are put together */
	bool done;             /* the part is there already: nothing is to be written */
	int lock_fd;           /* of .kpack, locked against other runs */
	uint8_t plan[16];      /* digest of the whole plan */
};

/*
 * P is planned, and nothing is written yet.  What another run left in the part's SHARD_DIR is
 * removed, its record first, unless that was this very run, which is done then; waits while one is
 * at work there.
 */
kpack_error_t shard_run_begin(struct packing *p, struct kpackx_error *why);

/*
 * Look for converted files as resume_join does.  INVALID_ARGUMENT: one would become a link to a
 * file that may be another shard's.
 */
kpack_error_t shard_run_join(struct packing *p, struct kpackx_error *why);

/* P's archives and its tree are complete: write the record. */
kpack_error_t shard_run_end(struct packing *p, struct kpackx_error *why);
void shard_run_fini(struct shard_run *run); /* accepts a zeroed one */

#endif
