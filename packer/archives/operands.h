/* SPDX-License-Identifier: MIT */
/* Open the operands ARCHIVE|DIR... as archives in order. */
#ifndef PACKER_ARCHIVES_OPERANDS_H
#define PACKER_ARCHIVES_OPERANDS_H

#include <stddef.h>
#include "core/archive/archive.h"
#include "core/target/choice.h"

struct archives {
	struct kpack_archive **items;
	size_t count;
	bool failed; /* an archive could not be opened, or none was found; it was reported */
};

/*
 * Call FN with the path of every archive of the operands, in order: for a file, its own
 * path; for a directory, its *.kpack in order of names, and then those of its ".kpack",
 * which a packed tree has.  An operand that is missing, or without archives, is reported
 * and makes the result false.
 */
bool archives_paths(int n, char **operands, void (*fn)(const char *path, void *arg),
		    void *arg);

/* Add all archives, open, to SET, which begins zeroed.  One that cannot be opened is reported. */
void archives_open(struct archives *set, int n, char **operands);
void archives_close(struct archives *set);

/*
 * Report the entries that were refused, of the architectures that ASKED chooses, or NULL:
 * all.  Returns whether there are any.
 */
bool archives_refused(const struct kpack_archive *a, const struct kp_choice *asked);

#endif
