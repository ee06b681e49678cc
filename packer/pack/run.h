/* SPDX-License-Identifier: MIT */
/*
 * A run of packing: scan, plan, archives, then the binaries.  kpack pack is one; commands that
 * take a tree apart begin with one.
 */
#ifndef PACKING_H
#define PACKING_H

#include "packer/pack/scan/rocfft_caches.h"
#include "packer/pack/tree/converter.h"
#include "args.h"
#include "packer/shard/run.h"

struct packing {
	struct pack_args args;
	struct scan scan;
	struct cache_parts parts;
	struct plan plan;
	struct outcomes outcomes; /* none when only archives are written */
	struct archive_set *set;  /* NULL: there is nothing to store */
	char *archives;           /* the archives' directory */
	char *inherit;            /* the directory of those that INPUT has; or NULL */
	struct converter converter;
	struct shard_run shard;
};

/*
 * Carry out P's args, the rest being zeroed: scan, then write.  What is between the two may
 * look at what was found, and choose the group.  Exit status, after telling what went wrong; then
 * nothing is half-written.  What was found and done stands in P until it is closed; the
 * archives' directory stays locked until then.
 */
int packing_run(struct packing *p);
int packing_scan(struct packing *p);
int packing_write(struct packing *p);
void packing_close(struct packing *p); /* ARGS too; accepts a zeroed one */

#endif
