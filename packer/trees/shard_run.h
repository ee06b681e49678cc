/* SPDX-License-Identifier: MIT */
/*
 * Run packing as one shard of several: drop what other shards own, and record the rest.
 */
#ifndef PACKER_SHARD_RUN_H
#define PACKER_SHARD_RUN_H

#include "shard_log.h"
#include "packer/pack/run.h"

struct shard_run {
	struct store_observer observer;
	struct shard_log *log;
	bool *mine;           /* per entry of the scan */
	bool hosts;           /* save host parts: joining may change volumes */
	int lock_fd;          /* of .kpack, locked against other runs */
	uint8_t plan[16];     /* digest of the whole plan */
	bool finished_before; /* an earlier run of this shard wrote everything */
};

/*
 * As packing_run: run P, whose arguments have a shard, as that shard alone.  RUN is
 * zeroed; finish it after P is closed.
 *
 * Before it writes, it waits while another run is at work in the part.  Then it removes
 * what another run left in the part's SHARD_DIR, the record first; but if that is the
 * finished result of this very run, it sets `finished_before` and writes nothing.
 * INVALID_ARGUMENT: a converted file would become a link to a file that may be another
 * shard's.
 */
int shard_run(struct shard_run *run, struct packing *p);
void shard_run_fini(struct shard_run *run); /* accepts a zeroed one */

#endif
