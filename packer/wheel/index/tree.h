/* SPDX-License-Identifier: MIT */
/* A simple index as a directory that appears, or replaces another index, as a whole. */
#ifndef PACKER_WHEEL_INDEX_TREE_H
#define PACKER_WHEEL_INDEX_TREE_H

#include "wheel.h"

/*
 * Write the index of WHEELS, sorted by project, then file name, which stand in DIR, as the
 * directory OUT.  INVALID_ARGUMENT: OUT is there and is no index of ours.  IO_ERROR, and
 * what index_variants says.
 */
kpack_error_t index_tree_write(const char *dir, const char *out,
			       const struct index_wheel *wheels, size_t count,
			       struct kpackx_error *why);

#endif
