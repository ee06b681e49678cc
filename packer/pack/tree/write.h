/* SPDX-License-Identifier: MIT */
/* A whole tree, or a file by itself, copied with its binaries converted. */
#ifndef PACKER_PACK_TREE_WRITE_H
#define PACKER_PACK_TREE_WRITE_H

#include "converter.h"

/*
 * Could OUTPUT be made of INPUT?  INVALID_ARGUMENT: one is inside the other, or OUTPUT would
 * replace INPUT; with the reason.  IO_ERROR: INPUT cannot be looked at.
 */
kpack_error_t output_check(const char *input, const char *output,
			   struct kpackx_error *why);

/*
 * The same where OUTPUT only gets trees beside others: it may hold INPUT.
 */
kpack_error_t output_check_beside(const char *input, const char *output,
				  struct kpackx_error *why);

/*
 * Before anything is written: is a directory of SCAN read-only in OUTPUT, as where archives
 * are mounted?  The first is reported, and counted.
 */
kpack_error_t output_check_mounts(const struct scan *scan, const char *output,
				  size_t *faults, struct kpackx_error *why);

/* Is it an archive of INPUT's own, which comes with the archives and is not copied? */
bool output_is_inherited(const struct scan_entry *e);

/*
 * Write the tree that C's scan saw in ROOT into C's output, or, in place, convert its
 * binaries.  The archives must be there, published.  C's outcomes say afterwards what
 * became of each path.  Nothing else in the output is touched, but for archives, which
 * were inherited.  What went wrong names its file.
 */
kpack_error_t output_write(const struct converter *c, const char *root,
			   struct kpackx_error *why);

#endif
