/* SPDX-License-Identifier: MIT */
/*
 * kpack split of one tree: each prefix is packed separately into the generic tree, then the
 * files of one architecture move to that architecture's tree.
 *
 *	split_args.c      the command line
 *	split.c           the run: prefixes, groups, trees, names, --gpu-targets, and the report
 *	split_move.c      from the generic tree to the trees of architectures, which are complete
 *	                  and may replace those that are there
 *	split_archives.c  kpack split of archives, which shares nothing but the options
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
#ifndef PACKER_TREES_SPLIT_H
#define PACKER_TREES_SPLIT_H

#include <jansson.h>
#include "artifact.h"
#include "packer/files/staging.h"
#include "packer/pack/args.h"
#include "partition.h"

/* The root of the paths that keys begin with. */
enum split_keys {
	KEYS_DETECTED, /* the artifact if there is a manifest */
	KEYS_ARTIFACT,
	KEYS_PREFIX,
};

struct split_args {
	const char *input, *output;
	const char *batch; /* instead of input: split every artifact in this directory */
	char *name;        /* of the trees; NULL: the input's name */
	char *archive_dir; /* the archives', in each prefix; NULL: KP_ARCHIVES_DIR */
	bool manifest;     /* the input must have a manifest */
	bool force, json, quiet, drop_signature;
	bool packed; /* files of kernel databases also go into archives */
	enum split_keys keys;
	char *libraries;
	const char *rules;
	char *targets;                /* as given, separated by commas; NULL: all */
	bool exact;                   /* targets are meant to the letter */
	struct option_texts families; /* NAME=ARCH,... */
	int level;
	unsigned jobs;
	size_t n_operands; /* archives, if several: all operands but the last */
	char **operands;
};

/* Returns the exit status, after reporting what is wrong. */
int split_args_parse(struct split_args *args, int argc, char **argv);
/*
 * Make the arguments for packing one prefix.  OUT borrows INPUT and OUTPUT.
 * INVALID_ARGUMENT: families, targets or libraries are wrong; further errors of reading them.
 * The caller finishes OUT in any case.
 */
kpack_error_t split_args_pack(const struct split_args *args, const char *input,
			      const char *output, struct pack_args *out,
			      struct kpackx_error *why);

/* One prefix that exists. */
struct split_prefix {
	const char *path; /* below the input; "": the input itself; borrowed */
	char *input;      /* its directory */
	char *output; /* its directory in the generic tree, in the staging directory */
	struct packing packing;
	struct partition parts; /* empty: not packed yet */
	size_t n_old,
		n_old_dropped; /* archives of the input; those that nobody asked for */
};

/* An output tree. */
struct split_tree {
	const char *part; /* borrowed from a partition, or static */
	char *name;       /* "NAME_PART" */
	char *root;       /* its path in the staging directory */
	bool family;
	struct tree_write writer; /* all of it, but for what packing writes */
};

/* A file of an artifact that is in no prefix: it is copied to the generic tree. */
struct split_outside {
	char *path;           /* to open it */
	const char *relative; /* inside path */
	struct file_identity id;
	char *left; /* why a device or socket is not copied; or NULL */
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
	struct split_outside *outside;
	size_t n_outside;
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

/* Print notes about paths that were not handled as a user may expect, and the table. */
void split_report_notes(const struct split *s);
void split_report(const struct split *s); /* nothing with --quiet */
json_t *split_report_json(const struct split *s);

/*
 * Whether PATH is an archive, by its name or by its magic bytes, or a directory that
 * contains nothing but files named like archives.
 */
bool split_is_archives(const char *path);
/* Split the operands of ARGS into its output.  Returns the exit status; reports faults. */
int split_archives(const struct split_args *args);

/* --- among the files of split ------------------------------------------------------- */

/* The output tree of PART, or NULL; the generic one exists from the beginning. */
struct split_tree *split_tree_of(const struct split *s, const char *part);
struct split_tree *split_generic(const struct split *s);
/* The path of PREFIX/RELATIVE (either may be "") in the staged TREE; the caller frees it. */
char *split_path(const struct split *s, const struct split_tree *tree, const char *prefix,
		 const char *relative);
/* The path of the archive NAME of P, below the root of its tree; the caller frees it. */
char *split_archive_path(const struct split_prefix *p, const char *name);
/*
 * The prefix that holds the archive NAME of PART, which P's run wrote: P itself, or, if
 * archives are joined, the first prefix by path whose run wrote one of that name.
 */
const struct split_prefix *split_archive_home(const struct split *s,
					      const struct split_prefix *p,
					      const char *part, const char *name);
/* Whether the tree of PART gets anything from P; the generic one of a packed prefix does. */
bool split_contributes(const struct split_prefix *p, const char *part);

/*
 * Move the files that P's partition assigns to other trees, and make their directories
 * there.  Directories that become empty are removed.  Hard links between output trees
 * become separate files, because each output tree can be installed alone.
 */
kpack_error_t split_move(struct split *s, const struct split_prefix *p,
			 struct kpackx_error *why);
/* After everything is moved: write the manifests, and set the attributes of directories. */
kpack_error_t split_finish(struct split *s, struct kpackx_error *why);

/*
 * Before the trees get their names, check that trees that have them already are those of an
 * earlier run, without --force.  AGAIN: there may be trees to replace.
 * INVALID_ARGUMENT: a tree in the way is another's.  IO_ERROR.
 */
kpack_error_t split_check(const struct split *s, bool *again, struct kpackx_error *why);

#endif
