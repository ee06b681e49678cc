/* SPDX-License-Identifier: MIT */
/*
 * A run of kpack split over one tree: each prefix is packed into the generic tree by itself,
 * then what is of one architecture moves to that one's tree.
 *
 * The archives of a prefix stand in its own .kpack, so that nothing has to be put together.
 * Their group is the name of the trees; where several prefixes have device code, it is that
 * of the first of them by path, and of each other NAME.PATH, with dots for slashes: all can
 * be installed into one root.  No group ends in a dot and digits, as volumes do: an "x" is added
 * then, and where another prefix has that group.
 */
#ifndef PACKER_SPLIT_SPLIT_H
#define PACKER_SPLIT_SPLIT_H

#include "outside.h"
#include "partition.h"
#include "args.h"
#include "packer/files/staging.h"

/* One prefix, if it is there. */
struct split_prefix {
	const struct prefix *prefix;
	char *input;  /* its directory */
	char *output; /* in the generic tree that is made */
	struct packing packing;
	struct partition parts;      /* none: it was not packed */
	size_t n_old, n_old_dropped; /* archives that it had; those not asked for */
};

/* A tree of the output. */
struct split_tree {
	const char *part; /* borrowed from a partition, or static */
	char *name;       /* "NAME_PART" */
	bool family;
};

/* What was not asked for, of one architecture. */
struct split_dropped {
	char *arch;
	size_t objects, files;
	uint64_t bytes;
};

struct split {
	const struct split_args *args;
	const char *input;
	char *name;
	struct prefixes prefixes;
	struct split_prefix *items; /* by path */
	size_t n_items;
	struct outside outside;
	struct staging staging;
	struct split_tree
		*trees; /* by part; the generic one is last: it is published last */
	size_t n_trees;
	struct split_dropped *dropped; /* by architecture */
	size_t n_dropped;
};

/*
 * Split INPUT into trees NAME_*, which is copied.  Exit status, after reporting what went
 * wrong; then nothing stands in the output.
 */
int split_run(struct split *s, const struct split_args *args, const char *input,
	      const char *name);
void split_close(struct split *s); /* accepts a zeroed one with staging.fd -1 */

/* Where RELATIVE of PREFIX ("" or one's path) stands in TREE while it is made; on the heap. */
char *split_path(const struct split *s, const struct split_tree *tree, const char *prefix,
		 const char *relative);
/* The tree of PART. */
const struct split_tree *split_tree_of(const struct split *s, const char *part);

#endif
