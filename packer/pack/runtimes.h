/* SPDX-License-Identifier: MIT */
/* The HIP runtimes of a tree that is packed. */
#ifndef PACKER_PACK_RUNTIMES_H
#define PACKER_PACK_RUNTIMES_H

#include "packer/gpu/runtimes.h"
#include "packer/scan/scan.h"

/* Add the runtimes among the files of SCAN. */
void pack_runtimes_add(struct hip_runtimes *list, const struct scan *scan);

#endif
