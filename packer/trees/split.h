/* SPDX-License-Identifier: MIT */
/*
 * A run of kpack split over one tree: each prefix is packed separately into the generic
 * tree, then the files of one architecture move to that architecture's tree.
 *
 * The archives of an artifact are joined, as TheRock's splitter has them, so that trees of
 * both can be installed together: keys begin with the prefix, the group is NAME, the
 * name of the trees, and one archive has an architecture's code of all prefixes.  It is in
 * the first prefix, by path, that has such code; binaries look for it in their own prefix,
 * because all prefixes are installed into one root.
 *
 * Otherwise keys are paths inside the prefix, and the archives of a prefix are in its own
 * .kpack.  If several prefixes have device code, the first one by path has the group NAME
 * and each other one NAME.PATH, with dots for slashes, so that all prefixes can also be
 * installed into one root.  An "x" is appended if NAME.PATH ends in a dot and digits, like
 * the name of a volume, or if another prefix already has that group.
 */
#ifndef PACKER_SPLIT_SPLIT_H
#define PACKER_SPLIT_SPLIT_H

#include "outside.h"
#include "partition.h"
#include "split_args.h"
#include "packer/files/staging.h"

/* One prefix that exists. */
struct split_prefix {
	const struct prefix *prefix;
	char *input;  /* its directory */
	char *output; /* its directory in the generic tree, in the staging directory */
	struct packing packing;
	struct partition parts;      /* empty: not packed yet */
	size_t n_old, n_old_dropped; /* existing archives; unrequested ones */
};

/* An output tree. */
struct split_tree {
	const char *part; /* borrowed from a partition, or static */
	char *name;       /* "NAME_PART" */
	char *root;       /* its path in the staging directory */
	bool family;
	struct tree_write writer; /* all of it, but for what packing writes */
};

/* Code and files of one architecture that --gpu-targets left out. */
struct split_dropped {
	char *arch;
	size_t objects, files;
	uint64_t bytes;
};

struct split {
	const struct split_args *args;
	const char *input;
	char *name;
	bool joined; /* keys and archives are those of an artifact: see above */
	struct prefixes prefixes;
	struct split_prefix *items; /* by path */
	size_t n_items;
	struct outside outside;
	struct staging staging;
	struct split_tree
		*trees; /* sorted; the generic one is last: it gets its name last */
	size_t n_trees;
	struct split_dropped *dropped; /* by architecture */
	size_t n_dropped;
};

/*
 * Split INPUT into trees NAME_*; NAME is copied.  Returns the exit status, after
 * reporting what went wrong; on failure nothing is left in the output.
 */
int split_run(struct split *s, const struct split_args *args, const char *input,
	      const char *name);
void split_close(struct split *s); /* accepts a zeroed one with staging.fd -1 */

/*
 * The path of PREFIX/RELATIVE (either may be "") in the staged TREE; the caller frees it.
 */
char *split_path(const struct split *s, const struct split_tree *tree, const char *prefix,
		 const char *relative);
/* The path of the archive NAME of I, below its prefix; the caller frees it. */
char *split_archive_path(const struct split_prefix *i, const char *name);
/* The output tree of PART, or NULL. */
struct split_tree *split_tree_of(const struct split *s, const char *part);

#endif
