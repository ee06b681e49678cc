/* SPDX-License-Identifier: MIT */
/*
 * Files of kernel databases whose path has other bytes in the output already: two builds, each
 * for its GPUs, give files that every GPU needs the same name and not the same bytes.
 */
#ifndef PACKER_PACK_DATABASE_CLASH_H
#define PACKER_PACK_DATABASE_CLASH_H

#include "packer/archives/content_hash.h"
#include "packer/pack/tree/outcome.h"
#include "args.h"
#include "packer/pack/plan/plan.h"

/* A run that has written nothing yet. */
struct clash_run {
	const struct pack_args *args;
	const struct scan *scan;
	struct plan *plan;
	struct outcomes *outcomes; /* none: no tree is written */
	const char *archives;      /* their directory */
};

/* A file of a database, or a link in its place, that is to be packed or copied. */
struct clash_file {
	char *path; /* in archives */
	size_t entry;
	const char *disk; /* where its bytes are, from OFFSET on */
	uint64_t offset, size;
	bool stored; /* by the plan */
	bool link;   /* symbolic */
	bool hashed;
	struct content_hash hash;
	bool dropped; /* what is there is preferred */
};

struct clash {
	const struct clash_run *run;
	struct clash_file *files; /* by path */
	size_t n_files, files_cap;
	size_t n_told, n_faults;
};

/* Compare all files with those of the other side, and tell. */
typedef kpack_error_t clash_side(struct clash *c, struct kpackx_error *why);
clash_side clash_archives; /* archives that are there: kept from other runs */
clash_side clash_tree;     /* files of the output */

/*
 * The file of one GPU replaces that in its group's archive, or in the tree, being built anew;
 * all else that differs is reported as a fault, or, with a preference, as a note.  What is there
 * being preferred, PLAN does not store ours, and its outcome is set.
 * INVALID_ARGUMENT: there were faults.
 */
kpack_error_t clash_check(const struct clash_run *run, clash_side *side,
			  struct kpackx_error *why);

/* For its parts: */

/* The file under PATH, or NULL. */
struct clash_file *clash_find(const struct clash *c, struct kp_span path);
/* Who has other bytes. */
struct clash_other {
	const char *path; /* of the archive, or the file */
	const char *arch;
	bool is_file;
	const char *fixed; /* why it cannot be replaced; NULL: it can */
};
kpack_error_t clash_tell(struct clash *c, struct clash_file *file,
			 const struct clash_other *other, struct kpackx_error *why);
#endif
