/* SPDX-License-Identifier: MIT */
/* Shared by the modules that make a partition. */
#ifndef PACKER_SPLIT_PARTITION_INTERNAL_H
#define PACKER_SPLIT_PARTITION_INTERNAL_H

#include "partition.h"

/*
 * Find the output tree NAME, or add it; NUMBER is its index.  Errors of partition_open.
 */
kpack_error_t partition_take(struct partition *out, const char *name, bool family,
			     size_t *number, struct kpackx_error *why);

/* Add ARCH to PART's architectures, unless it is already listed. */
void partition_add_arch(struct output_tree *part, const char *arch);

/*
 * Assign each archive that P wrote to an output tree, and list each tree's architectures.
 */
kpack_error_t partition_archives(const struct packing *p, struct partition *out,
				 struct kpackx_error *why);

#endif
