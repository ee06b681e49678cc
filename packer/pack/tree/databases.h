/* SPDX-License-Identifier: MIT */
/* What becomes in a tree of the files of kernel databases, which archives have now. */
#ifndef PACKER_PACK_TREE_DATABASES_H
#define PACKER_PACK_TREE_DATABASES_H

#include "outcome.h"
#include "packer/pack/plan/plan.h"

/* How many are there of which PLAN stores nothing? */
kpack_error_t databases_not_asked(const struct scan *scan, const struct plan *plan,
				  size_t *n, struct kpackx_error *why);

/*
 * Where they are identified: those for none of the targets that FILTER selects, nor for
 * every GPU, are NOT_WANTED.  To be called before databases_decide.
 */
kpack_error_t databases_leave_out(const struct scan *scan, struct arch_filter *filter,
				  struct outcomes *outcomes, struct kpackx_error *why);

/*
 * Set their outcomes: PACKED when PLAN stores something of them, else NOT_WANTED; with KEEP
 * they stay what outcomes_open made of them, and hard links among them are found.
 */
kpack_error_t databases_decide(struct scan *scan, const struct plan *plan, bool keep,
			       struct outcomes *outcomes, struct kpackx_error *why);

/*
 * Before anything is written: tell what could not be removed in place, of a directory that
 * forbids it the first.
 */
void databases_check(const struct scan *scan, const struct outcomes *outcomes,
		     size_t *faults);

/*
 * After the archives are on the disk: remove each PACKED one in place, and flush its
 * directory.  One that is not what was packed is an error.
 */
kpack_error_t databases_remove(const struct scan *scan, const struct outcomes *outcomes,
			       struct kpackx_error *why);

#endif
