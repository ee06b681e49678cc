/* SPDX-License-Identifier: MIT */
/*
 * Clashes: files of kernel databases whose path already has other bytes in the output.
 * Two builds, each for its own GPUs, give the files that every GPU needs the same name
 * but not the same bytes.
 */
#ifndef PACKER_PACK_DATABASE_CLASH_H
#define PACKER_PACK_DATABASE_CLASH_H

#include "packer/archives/content.h"
#include "disposition.h"
#include "args.h"
#include "plan.h"

/* A run that has written nothing yet. */
struct clash_run {
	const struct pack_args *args;
	const struct scan *scan;
	struct plan *plan;
	struct dispositions *dispositions; /* NULL: no tree is written */
	const char *archives;              /* the archives' directory */
};

/* A file of a database, or a link in its place, that is to be packed or copied. */
struct clash_file {
	char *path; /* as archives name it */
	size_t entry;
	const char *disk; /* the file that has its bytes, from `offset` on */
	uint64_t offset, size;
	bool stored; /* the plan stores it */
	bool link;   /* it is a symbolic link */
	bool hashed;
	struct kp_hash hash;
	bool differs; /* the output's tree has other bytes at its path */
	bool dropped; /* the output's file or entry is preferred */
};

struct clash {
	const struct clash_run *run;
	struct clash_file *files; /* sorted by path */
	size_t n_files, files_cap;
	size_t n_reported, n_faults;
};

/* Compare all files with one side of the output, and report those that differ. */
typedef kpack_error_t clash_side(struct clash *c, struct kpackx_error *why);
clash_side clash_archives; /* existing archives, kept from other runs */
clash_side clash_tree;     /* files of the output */

/*
 * Compare the run's files of databases with SIDE.  A file for one GPU replaces the one in
 * its group's archive or in the tree, which is being rebuilt; every other difference is
 * reported as a fault, or, with a preference, as a note.  Where the output is preferred,
 * PLAN does not store our file, and the file's disposition is set.
 * INVALID_ARGUMENT: there were faults.
 */
kpack_error_t clash_check(const struct clash_run *run, clash_side *side,
			  struct kpackx_error *why);

/* For the two sides: */

/* Returns the file at PATH, or NULL. */
struct clash_file *clash_find(const struct clash *c, struct kp_span path);
/* The archive or file that has other bytes. */
struct clash_other {
	const char *path; /* of the archive, or the file */
	const char *arch;
	bool is_file;
	const char *fixed; /* why it cannot be replaced; NULL: it can */
};
/* Report that FILE and OTHER differ, as clash_check says, and apply the preference. */
void clash_report(struct clash *c, struct clash_file *file,
		  const struct clash_other *other);
#endif
