/* SPDX-License-Identifier: MIT */
/*
 * The architecture filter: a mount shows code for all GPUs, or what some GPUs can load.
 */
#ifndef FS_TREE_ARCH_FILTER_H
#define FS_TREE_ARCH_FILTER_H

#include <stdio.h>
#include "core/target/target.h"
#include "core/view/view.h"

struct arches {
	struct kp_target *list; /* no two are equal */
	size_t count;
	size_t named; /* first elements of the list: given by name; the rest were found */
	bool chosen;  /* something was added; else every architecture is shown */
	bool all;     /* "all" was added, which overrides everything else */
	bool find;    /* "auto" was added: arches_find looks for this machine's GPUs */
};

/*
 * Add LIST: target IDs, "auto" and "all", separated by commas or semicolons.
 * false: LIST is wrong, or no memory; logged.
 */
bool arches_add(struct arches *a, const char *list);

/*
 * If "auto" was added and "all" was not, add the GPUs of TOPOLOGY (see kp_gpus_read).
 * Logs a warning when it has no GPU, and for each part that makes no sense.  false: no
 * memory.
 */
bool arches_find(struct arches *a, const char *topology);

/*
 * Log a warning for each named target ID for which no archive has a file: it may be a
 * typing error.  Target IDs that suit every GPU are not checked.
 */
void arches_warn(const struct arches *a, struct kpack_archive *const *archives,
		 size_t count);

/* The filter as options for kp_view_new; they borrow the list. */
struct kp_view_options arches_view(const struct arches *a);

/* Write the target IDs, one a line, or "all". */
void arches_put(const struct arches *a, FILE *f);

/* As arches_put, in one line, with SEPARATORs; NULL: the list is empty, or no memory. */
char *arches_line_new(const struct arches *a, const char *separator);

void arches_free(struct arches *a);

#endif
