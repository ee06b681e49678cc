/* SPDX-License-Identifier: MIT */
/* The GPUs whose code a mount shows: all, or what some GPUs can load. */
#ifndef FS_TREE_ARCH_FILTER_H
#define FS_TREE_ARCH_FILTER_H

#include <stdio.h>
#include "core/target/target.h"
#include "core/view/view.h"

struct arches {
	struct kp_target *list; /* no two are equal */
	size_t count;
	size_t named; /* the first of the list; the others were found */
	bool chosen;  /* something was added: not all */
	bool all;     /* "all" was, which wins */
	bool find;    /* "auto" was: arches_find is to look for this machine's GPUs */
};

/*
 * Add LIST: target IDs, "auto" and "all", with commas or semicolons between them.
 * false: what is wrong has been logged.
 */
bool arches_add(struct arches *a, const char *list);

/*
 * Where "auto" was added and "all" was not: add the GPUs of TOPOLOGY (see kp_gpus_read).
 * That there are none, and what makes no sense, is logged as a warning.  false: no memory.
 */
bool arches_find(struct arches *a, const char *topology);

/*
 * Log a warning for each that was named and of which no archive has a file, but for those
 * that suit every GPU: it may be a slip.
 */
void arches_warn(const struct arches *a, struct kpack_archive *const *archives,
		 size_t count);

/* For kp_view_new; borrows the list. */
struct kp_view_options arches_view(const struct arches *a);

/* Write a line each, or "all". */
void arches_put(const struct arches *a, FILE *f);

/* The same in one line, with SEPARATORs; NULL: there is none, or no memory. */
char *arches_line_new(const struct arches *a, const char *separator);

void arches_free(struct arches *a);

#endif
