/* SPDX-License-Identifier: MIT */
/*
 * Which trees are about to get their names, written down beside them: a run that finds
 * only some of them can tell that the others are missing.
 */
#ifndef PACKER_FILES_JOURNAL_H
#define PACKER_FILES_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/errors.h"

/* Its name: no tree is called so. */
#define JOURNAL_NAME ".kpack-staging-names"

struct journal_name {
	char *name;
	uint64_t ino, born_ns; /* of the tree that is to have it */
	int64_t born;
};

struct journal {
	struct journal_name *items;
	size_t count;
};

/* Write the journal of the N trees NAMES into the directory DIR, in which they stand. */
kpack_error_t journal_write(int dir, const char *const *names, size_t n,
			    struct kpackx_error *why);

/* Read that of DIR.  false: there is none, or it is not whole: then no name was given. */
bool journal_read(struct journal *out, int dir);
void journal_fini(struct journal *journal);

/* Has the tree its name in the directory TO? */
bool journal_given(const struct journal_name *name, int to);

#endif
