/* SPDX-License-Identifier: MIT */
/*
 * Trees that appear together: they are made in a staging directory inside their final
 * directory, and get their names when all are complete.  The same user's next run in that
 * directory removes what a killed run left, but not what a running one uses.
 */
#ifndef PACKER_FILES_STAGING_H
#define PACKER_FILES_STAGING_H

#include "core/base/errors.h"

struct staging {
	const char *dir; /* the trees' final directory; borrowed */
	char *path;      /* path of the staging directory */
	int fd;          /* the staging directory, locked while the run lasts; -1: none */
};

/*
 * Make DIR, if it is missing, and a staging directory in it.  Leftovers of killed runs
 * that cannot be removed stay, and are not reported.
 */
kpack_error_t staging_open(struct staging *s, const char *dir, struct kpackx_error *why);
/* Remove all trees that have not got their names.  Accepts zeros with fd -1. */
void staging_close(struct staging *s);

/* Check that NAME is free or can be REPLACEd.  INVALID_ARGUMENT: it exists and cannot. */
kpack_error_t staging_check(const struct staging *s, const char *name, bool replace,
			    struct kpackx_error *why);

/*
 * Flush all, then give the N trees NAMES their names in this order, REPLACEing trees that
 * have these names.  On failure the trees that got names lose them again, and the trees
 * that they replaced are restored.  If the run is killed, the first trees may have names;
 * the next staging_open in that directory then undoes this in the same way.
 */
kpack_error_t staging_publish(struct staging *s, const char *const *names, size_t n,
			      bool replace, struct kpackx_error *why);

#endif
