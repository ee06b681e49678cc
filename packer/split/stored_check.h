/* SPDX-License-Identifier: MIT */
/* Do the archives of a run hold what was planned, and nothing else?  Read back from them. */
#ifndef PACKER_SPLIT_STORED_CHECK_H
#define PACKER_SPLIT_STORED_CHECK_H

#include "packer/pack/run.h"

struct stored_check;

/* What P, which was run, stored.  OUT_OF_MEMORY. */
kpack_error_t stored_check_new(const struct packing *p, struct stored_check **out,
			       struct kpackx_error *why);
void stored_check_free(struct stored_check *c); /* NULL is fine */

/*
 * Look at the entries of the archive PATH, which is for ARCHES: N canonical ones, sorted; none:
 * it is for every GPU.  INVALID_FORMAT: it has one that was not planned, or has other bytes, or
 * stands in another archive, too, or is not for these.
 */
kpack_error_t stored_check_archive(struct stored_check *c, const char *path,
				   char *const *arches, size_t n,
				   struct kpackx_error *why);

/* After all archives: INVALID_FORMAT: an object is in none of them. */
kpack_error_t stored_check_end(const struct stored_check *c, struct kpackx_error *why);

#endif
