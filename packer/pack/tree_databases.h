/* SPDX-License-Identifier: MIT */
/*
 * The files of kernel databases in a tree: their dispositions, and, in place, their removal.
 */
#ifndef PACKER_PACK_TREE_DATABASES_H
#define PACKER_PACK_TREE_DATABASES_H

#include "disposition.h"
#include "plan.h"

/* Count the files of databases of which PLAN stores nothing. */
size_t databases_not_asked(const struct scan *scan, const struct plan *plan);

/*
 * For files of databases that are identified and not packed: set NOT_WANTED for those
 * that are neither for a target that FILTER selects nor for every GPU.  Call it before
 * databases_decide.
 */
void databases_leave_out(const struct scan *scan, struct arch_filter *filter,
			 struct dispositions *dispositions);

/*
 * Set the dispositions of files of databases: PACKED when PLAN stores something of the file,
 * else NOT_WANTED.  With KEEP they stay as dispositions_open set them, except that hard links
 * to one file become LINKED.
 */
void databases_decide(struct scan *scan, const struct plan *plan, bool keep,
		      struct dispositions *dispositions);

/*
 * In place, after databases_decide: NOT_WANTED files that no GPU of FILTER can load
 * become REMOVED; other NOT_WANTED files are left alone.
 */
void databases_remove_others(const struct scan *scan, struct arch_filter *filter,
			     struct dispositions *dispositions);

/*
 * Before anything is written, report and count the files that could not be removed in
 * place; only the first one in a directory that forbids it.
 */
void databases_check(const struct scan *scan, const struct dispositions *dispositions,
		     size_t *faults);

/*
 * After the archives are on the disk, remove each PACKED or REMOVED file in place and flush its
 * directory.  A file that is not what was packed is an error.
 */
kpack_error_t databases_remove(const struct scan *scan,
			       const struct dispositions *dispositions,
			       struct kpackx_error *why);

#endif
