/* SPDX-License-Identifier: MIT */
/*
 * A packing run: scan, plan, write the archives, then the binaries.  kpack pack is one
 * run; commands that split a tree begin with one.
 */
#ifndef PACKER_PACK_RUN_H
#define PACKER_PACK_RUN_H

#include "packer/pack/scan/rocfft_caches.h"
#include "packer/pack/tree/write.h"
#include "args.h"
#include "store.h"

struct packing;

/*
 * Additional steps of a run that is one shard of several machines' run.  P is the run,
 * `arg` is the hooks' own.  Each call may fail the run.
 */
struct packing_hooks {
	void *arg;
	const char *dir; /* the archives' directory, below OUTPUT */
	struct store_observer observer;
	/*
	 * P is planned and nothing is written.  Sets P's `finished_before` if nothing
	 * needs to be.
	 */
	kpack_error_t (*begin)(struct packing *p, struct kpackx_error *why);
	/* All objects are stored, and no archive has its name yet. */
	kpack_error_t (*join)(struct packing *p, struct kpackx_error *why);
	/* The archives and the tree are complete. */
	kpack_error_t (*end)(struct packing *p, struct kpackx_error *why);
};

struct packing {
	struct pack_args args;
	struct scan scan;
	struct cache_files parts;
	struct plan plan;
	struct dispositions dispositions; /* empty when only archives are written */
	struct archive_set *set;          /* NULL: there is nothing to store */
	char *archives;                   /* the archives' directory */
	char *inherit; /* the directory of INPUT's own archives; or NULL */
	struct converter converter;
	struct tree_write tree;      /* with `apart`, the caller finishes it */
	struct packing_hooks *hooks; /* NULL: no other machine shares the run */
	bool finished_before;        /* an earlier run of this shard wrote everything */
	bool spilling;               /* large containers are decoded into `spill_dir` */
	int spill_dir;
};

/*
 * Carry out the `args` of P, whose other members are zeroed: scan, then write.  A caller
 * that makes the two calls itself may inspect the scan, and choose the group, between
 * them.  Each returns an exit status, after reporting what went wrong; a failed run
 * leaves nothing half-written.  P holds what was found and done until it is closed, and
 * the archives' directory stays locked until then.
 */
int packing_run(struct packing *p);
int packing_scan(struct packing *p);
int packing_write(struct packing *p);
void packing_close(struct packing *p); /* finishes `args`, too; accepts a zeroed P */

#endif
