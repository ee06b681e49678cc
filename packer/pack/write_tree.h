/* SPDX-License-Identifier: MIT */
/*
 * Write the output: a copy of a tree, or of a file by itself, with its binaries
 * converted.
 */
#ifndef PACKER_PACK_TREE_WRITE_H
#define PACKER_PACK_TREE_WRITE_H

#include "converter.h"
#include "packer/files/copy.h"

/*
 * Check that OUTPUT can be made from INPUT.  INVALID_ARGUMENT: one is inside the other,
 * or OUTPUT would replace INPUT; WHY says which.  IO_ERROR: INPUT cannot be accessed.
 */
kpack_error_t output_check(const char *input, const char *output,
			   struct kpackx_error *why);

/*
 * As output_check, for an OUTPUT that only gets further trees: it may contain INPUT.
 */
kpack_error_t output_check_beside(const char *input, const char *output,
				  struct kpackx_error *why);

/*
 * Before anything is written, check whether a directory of SCAN is read-only in OUTPUT,
 * as where archives are mounted.  The first such directory is reported and counted in
 * *FAULTS.
 */
void output_check_mounts(const struct scan *scan, const char *output, size_t *faults);

/*
 * Write the tree that C's scan found in ROOT to W, all but the attributes of directories;
 * or convert the binaries in place, and W is NULL.  The archives must be published.  Afterwards
 * C's dispositions hold the disposition of each path.  Nothing else in the output is
 * touched, except for inherited archives.  Errors name the file.
 */
kpack_error_t output_write(const struct converter *c, const char *root,
			   struct tree_write *w, struct kpackx_error *why);

#endif
