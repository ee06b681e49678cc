/* SPDX-License-Identifier: MIT */
/*
 * A journal of the trees that are about to get their names, in the directory that holds
 * them.  A later run that finds only some of these names sees that the other trees are
 * missing.
 */
#ifndef PACKER_FILES_JOURNAL_H
#define PACKER_FILES_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/errors.h"

/* The journal's file name: no tree has it. */
#define JOURNAL_NAME ".kpack-staging-names"

struct journal_name {
	char *name;
	uint64_t ino, born_ns; /* of the tree that is to get the name */
	int64_t born;
};

struct journal {
	struct journal_name *items;
	size_t count;
};

/* Write the journal of the N trees NAMES into the directory DIR, which holds them. */
kpack_error_t journal_write(int dir, const char *const *names, size_t n,
			    struct kpackx_error *why);

/* Read DIR's journal.  false: none, or it is incomplete: then no tree got its name. */
bool journal_read(struct journal *out, int dir);
void journal_fini(struct journal *journal);

/* Whether the tree has got its name in the directory TO. */
bool journal_given(const struct journal_name *name, int to);

#endif
