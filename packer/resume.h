/* SPDX-License-Identifier: MIT */
/* Binaries that an earlier run converted at some of their paths, and at others did not. */
#ifndef RESUME_H
#define RESUME_H

#include "outcome.h"
#include "plan.h"

/*
 * A file that is converted already and whose marker names the key of a binary of PLAN in an
 * archive of GROUP is that binary, when its objects are the same: its paths join the
 * binary's, and will be written with them.  To be called when the plan's objects were
 * read and before archives are published.
 * INVALID_ARGUMENT: they are others, and would be replaced under that key.
 */
kpack_error_t resume_join(struct scan *scan, const struct plan *plan, const char *group,
			  struct outcomes *outcomes, struct kpackx_error *why);

#endif
