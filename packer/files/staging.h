/* SPDX-License-Identifier: MIT */
/*
 * Trees that appear together: they are made in a directory of their own inside the directory
 * where they will stand, and get their names when all are whole.  What a killed run left
 * is removed by the next of that user that begins there; a run at work keeps its own.
 */
#ifndef PACKER_FILES_STAGING_H
#define PACKER_FILES_STAGING_H

#include "core/base/errors.h"

struct staging {
	const char *dir; /* where the trees will stand; borrowed */
	char *path;      /* of the directory they are made in */
	int fd;          /* of it: locked as long as the run lasts; -1: none */
};

/*
 * Make DIR, if it is missing, and a directory to work in.  What goes wrong with what others
 * left is reported nowhere: it stays.
 */
kpack_error_t staging_open(struct staging *s, const char *dir, struct kpackx_error *why);
/* Remove all that has not got its name.  Accepts a zeroed one with fd -1. */
void staging_close(struct staging *s);

/* Is NAME free?  INVALID_ARGUMENT: something has it, and it is not to be replaced. */
kpack_error_t staging_check(const struct staging *s, const char *name, bool replace,
			    struct kpackx_error *why);

/*
 * Flush all, then give the N trees NAMES their names in this order, REPLACEing trees that
 * have them.  On failure those that got theirs lose them again, and what they replaced is
 * back.  A killed run may leave the first of them: the next staging_open in that directory
 * takes them back, and puts what they replaced where it was.
 */
kpack_error_t staging_publish(struct staging *s, const char *const *names, size_t n,
			      bool replace, struct kpackx_error *why);

#endif
