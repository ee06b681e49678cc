/* SPDX-License-Identifier: MIT */
/*
 * A packing run: scan, plan, write the archives, then the binaries.  kpack pack is one
 * run, of one shard's part also; commands that split a tree or measure it call its steps.
 */
#ifndef PACKER_PACK_RUN_H
#define PACKER_PACK_RUN_H

#include "packer/files/spill_dir.h"
#include "packer/scan/rocfft_caches.h"
#include "write_tree.h"
#include "args.h"
#include "database_clash.h"
#include "store.h"

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
	struct tree_write tree;
	size_t faults; /* of files that cannot be packed; each was reported */
	/* Per entry of the scan: whether a shard packs it; owned.  NULL: everything is packed. */
	bool *mine;
	struct spill_dir spill;
};

/*
 * Carry out the `args` of P, whose other members are zeroed or set by the caller.
 * Returns an exit status, after reporting what went wrong; a failed run leaves nothing
 * half-written.  P holds what was found and done until it is closed, and the archives'
 * directory stays locked until then.
 */
int packing_run(struct packing *p);
void packing_close(struct packing *p); /* finishes `args`, too; accepts a zeroed P */

/*
 * The steps.  The first two, like packing_run, report errors and return an exit status.
 */
int packing_scan(struct packing *p);
/*
 * Report on the scan, plan, and check the output and the binaries.  EXIT_FAULT also:
 * there are faults, or nothing to do.
 */
int packing_prepare(struct packing *p);
bool packing_converts(const struct packing *p); /* whether it converts a binary */
/* Returns the exit status for ERR, after reporting it. */
int packing_status(kpack_error_t err, const struct kpackx_error *why);

/*
 * What packing_prepare consists of.  `archives` may be set before packing_plan; else they
 * are in the output's `archive_dir`.  Without packing_settle, which needs the
 * dispositions to be open, only archives can be written.
 */
kpack_error_t packing_plan(struct packing *p, struct kpackx_error *why);
void packing_settle(struct packing *p);
/* Reports that there are faults. */
bool packing_faulty(const struct packing *p);
/*
 * Between dispositions_open and packing_plan: find the binaries that cannot be converted, and
 * plan none of their code, which stays in them; with LEAVE_KEPT, none of files that are no
 * binaries either.
 */
void packing_check_binaries(struct packing *p, bool leave_kept);

/* The steps of writing. */
/* Open the set of archives, with those of the directory INHERIT (NULL: none). */
kpack_error_t packing_open_set(struct packing *p, const char *inherit, bool unnamed,
			       struct kpackx_error *why);
kpack_error_t packing_store(struct packing *p, struct kpackx_error *why);
/* All steps, after packing_prepare. */
kpack_error_t packing_write(struct packing *p, struct kpackx_error *why);
/* All steps for a tree, but for tree_write_finish. */
kpack_error_t packing_write_tree(struct packing *p, struct kpackx_error *why);

#endif
