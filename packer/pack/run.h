/* SPDX-License-Identifier: MIT */
/*
 * A packing run: struct packing says for each file what becomes of it, and carries it out.
 *
 *	packing_scan    what is there: files, device code, kernel databases
 *	packing_plan    which object goes into which archive, and the disposition of each file;
 *	                everything that can fail beforehand fails here
 *	packing_write   the archives, then the files
 *
 * kpack pack does one after the other.  Commands that split a tree, share a run or measure it do
 * something between, and say by `kind` what they need.
 */
#ifndef PACKER_PACK_RUN_H
#define PACKER_PACK_RUN_H

#include "args.h"
#include "packer/files/spill_dir.h"
#include "packer/gpu/runtimes.h"
#include "packer/library/rocfft.h"
#include "plan.h"
#include "tree.h"

enum packing_kind {
	PACKING_WHOLE,
	/*
	 * A tree whose archives go into packages of their own: what converted binaries become
	 * does not depend on the targets that were asked for, binaries that cannot be
	 * converted keep their code, and files that are no binaries are only copied.  It is
	 * no fault if there is nothing to pack.  The tree is staged, and not finished.
	 */
	PACKING_APART,
	PACKING_MEASURED, /* archives without names, and nothing else */
};

/* The members before `plan` may be set beforehand, the others are zeros then. */
struct packing {
	struct pack_args args;
	enum packing_kind kind;
	struct scan scan;
	char *archives; /* the archives' directory; NULL: `archive_dir` of the output */
	/* Per entry of the scan: whether a shard packs it; owned.  NULL: everything is packed. */
	bool *mine;

	struct plan plan;
	struct dispositions dispositions; /* empty when only archives are written */
	struct cache_files parts; /* made of rocFFT's caches; the plan stores them */
	struct archive_set *set;  /* NULL: there is nothing to store */
	char *inherit;            /* the directory of INPUT's own archives; or NULL */
	struct tree_write tree;
	size_t faults; /* of files that cannot be packed; each was reported */
};

/*
 * Scan, plan and write.  Returns an exit status, after reporting what went wrong; a failed run
 * leaves nothing half-written.  P holds what was found and done until it is closed, and the
 * archives' directory stays locked until then.
 */
int packing_run(struct packing *p);
void packing_close(struct packing *p); /* finishes `args`, too; accepts a zeroed P */

/*
 * The steps.  The first two report errors, and return an exit status.  packing_plan returns
 * EXIT_FAULT also if there are faults, or there is nothing to do.
 */
int packing_scan(struct packing *p);
int packing_plan(struct packing *p);
kpack_error_t packing_write(struct packing *p, struct kpackx_error *why);

bool packing_converts(const struct packing *p); /* whether it converts a binary */
/* Add the HIP runtimes among the files of SCAN. */
void packing_runtimes(const struct scan *scan, struct hip_runtimes *list);

/* --- parts of these steps, for this folder ------------------------------------------- */

/* The path of PATH's directory, on the heap. */
char *directory_of(const char *path);

/* How P's binaries are converted; P is the argument of its functions. */
struct converter packing_converter(struct packing *p);

/*
 * Inspect the converted binaries that lead to archives of P's group.  One that names a key of
 * the plan, and looks like that binary after conversion, joins its paths; the converter finds
 * out whether it really is.  The plan's objects must be read, and no archive published.
 * INVALID_ARGUMENT: the objects of a converted binary differ from those that would
 * replace them under its key, or these would go to other archives than its marker names.
 */
kpack_error_t packing_resume(struct packing *p, struct kpackx_error *why);

/*
 * Compare the files of databases with what the output's tree, or its archives kept from other
 * runs, have at their paths: two builds, each for its own GPUs, give the files that every GPU
 * needs the same name but not the same bytes.  A file for one GPU replaces the one in its
 * group's archive or in the tree, which is being rebuilt; every other difference is reported as
 * a fault, or, with a preference, as a note.  Where the output is preferred, the plan does not
 * store our file, and the file's disposition is set.
 * INVALID_ARGUMENT: there were faults.
 */
kpack_error_t clash_check_tree(struct packing *p, struct kpackx_error *why);
kpack_error_t clash_check_archives(struct packing *p, struct kpackx_error *why);

/* --- the report: report.c ------------------------------------------------------------------- */

struct pack_result {
	bool done;   /* the shard was already finished: nothing else is reported */
	char *mount; /* the command that makes packed files visible; or NULL */
	char *boot;  /* the one that does so at every boot; or NULL */
	char *undo;  /* the one that undoes the run; or NULL */
};

/* Print what P has done, which was written. */
void pack_report(const struct packing *p, const struct pack_result *result);

/*
 * After the run, print warnings about paths that were not converted, and unless QUIET notes
 * about those that were not copied as expected.
 */
void pack_report_dispositions(const struct scan *scan,
			      const struct dispositions *dispositions, bool quiet);

#endif
