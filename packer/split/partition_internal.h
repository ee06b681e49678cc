/* SPDX-License-Identifier: MIT */
/* What making a partition shares: its parts, and which archives go into each. */
#ifndef PACKER_SPLIT_PARTITION_INTERNAL_H
#define PACKER_SPLIT_PARTITION_INTERNAL_H

#include "partition.h"

/* The number of the part NAME, which is made when it is not there.  Errors of partition_open. */
kpack_error_t partition_take(struct partition *out, const char *name, bool family,
			     size_t *number, struct kpackx_error *why);

/* List ARCH in PART, once. */
kpack_error_t partition_add_arch(struct split_part *part, const char *arch,
				 struct kpackx_error *why);

/* Give each archive that P wrote to its part, and each part what it has code of. */
kpack_error_t partition_archives(const struct packing *p, struct partition *out,
				 struct kpackx_error *why);

#endif
