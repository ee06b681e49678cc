/* SPDX-License-Identifier: MIT */
/* Packing as one shard of several: what is not its own is taken out, the rest is recorded. */
#ifndef PACKER_SHARD_RUN_H
#define PACKER_SHARD_RUN_H

#include "log.h"
#include "packer/pack/run.h"

struct shard_run {
	struct packing_hooks hooks;
	struct shard_log *log;
	bool *mine;       /* per entry of the scan */
	bool hosts;       /* volumes may be others when all are put together */
	int lock_fd;      /* of .kpack, locked against other runs */
	uint8_t plan[16]; /* digest of the whole plan */
};

/*
 * Let P, whose arguments have a shard, be run as that shard alone.  RUN is zeroed; it is
 * finished after P was closed.
 *
 * When P begins to write, what another run left in the part's SHARD_DIR is removed, its record
 * first, unless that was this very run: then P has finished before.  Waits while a run is at
 * work there.  INVALID_ARGUMENT: a converted file would become a link to a file that may be
 * another shard's.
 */
void shard_run_join(struct shard_run *run, struct packing *p);
void shard_run_fini(struct shard_run *run); /* accepts a zeroed one */

#endif
