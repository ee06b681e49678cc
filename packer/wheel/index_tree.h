/* SPDX-License-Identifier: MIT */
/*
 * Write a simple index as a directory, which appears or replaces an older index
 * atomically.
 */
#ifndef PACKER_WHEEL_INDEX_TREE_H
#define PACKER_WHEEL_INDEX_TREE_H

#include "index_wheel.h"

/*
 * Write the index of WHEELS, which are in DIR and sorted by project, then file name, as
 * the directory OUT.  INVALID_ARGUMENT: OUT exists and is not an index that we wrote.
 * IO_ERROR, and the errors of index_variants.
 */
kpack_error_t index_tree_write(const char *dir, const char *out,
			       const struct index_wheel *wheels, size_t count,
			       struct kpackx_error *why);

#endif
