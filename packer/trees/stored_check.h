/* SPDX-License-Identifier: MIT */
/* Read the archives of a run back: they must hold what was planned, and nothing else. */
#ifndef PACKER_SPLIT_STORED_CHECK_H
#define PACKER_SPLIT_STORED_CHECK_H

#include "packer/pack/run.h"

struct stored_check;

struct stored_check *stored_check_new(void);
/* Also expect the entries that P, which has run, must have stored. */
void stored_check_add(struct stored_check *c, const struct packing *p);
void stored_check_free(struct stored_check *c);

/*
 * After everything was added: check the entries of the archive PATH, which is for ARCHES:
 * N canonical target IDs, sorted; with N 0 it is for every GPU.  INVALID_FORMAT: an entry
 * was not planned, has the wrong bytes, is also in another archive, or is not for ARCHES.
 */
kpack_error_t stored_check_archive(struct stored_check *c, const char *path,
				   char *const *arches, size_t n,
				   struct kpackx_error *why);

/* Call it after all archives.  INVALID_FORMAT: an object is in none of them. */
kpack_error_t stored_check_end(const struct stored_check *c, struct kpackx_error *why);

#endif
