/* SPDX-License-Identifier: MIT */
/*
 * A run of packing: scan, plan, archives, then the binaries.  kpack pack is one; commands that
 * take a tree apart begin with one.
 */
#ifndef PACKER_PACK_RUN_H
#define PACKER_PACK_RUN_H

#include "packer/pack/scan/rocfft_caches.h"
#include "packer/pack/tree/converter.h"
#include "args.h"
#include "store.h"

struct packing;

/*
 * What a run does besides when it is one of several machines' that share a run; P is the run,
 * ARG its own.  Each call may fail the run.
 */
struct packing_hooks {
	void *arg;
	const char *dir; /* of the archives, below OUTPUT */
	struct store_observer observer;
	/* P is planned, and nothing is written; P's finished_before: nothing is to be. */
	kpack_error_t (*begin)(struct packing *p, struct kpackx_error *why);
	/* Everything is stored, and no archive has its name yet. */
	kpack_error_t (*join)(struct packing *p, struct kpackx_error *why);
	/* The archives and the tree are complete. */
	kpack_error_t (*end)(struct packing *p, struct kpackx_error *why);
};

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
	struct packing_hooks *hooks; /* NULL: no other machine shares the run */
	bool finished_before;        /* an earlier run of the same wrote everything */
};

/*
 * Carry out P's args, the rest being zeroed: scan, then write.  What is between the two may
 * look at what was found, and choose the group.  Exit status, after reporting what went wrong; then
 * nothing is half-written.  What was found and done stands in P until it is closed; the
 * archives' directory stays locked until then.
 */
int packing_run(struct packing *p);
int packing_scan(struct packing *p);
int packing_write(struct packing *p);
void packing_close(struct packing *p); /* ARGS too; accepts a zeroed one */

#endif
