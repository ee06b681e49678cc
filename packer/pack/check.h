/* SPDX-License-Identifier: MIT */
/* kpack pack --check: nothing is packed when files of a kernel database are missing. */
#ifndef PACKER_PACK_CHECK_H
#define PACKER_PACK_CHECK_H

#include "args.h"
#include "packer/pack/scan/scan.h"

/*
 * Check what was found in the scanned tree (closure.h), before anything is written; each fault
 * is reported.  Returns the exit status: 0 when all is there, or ARGS do not want the check.
 */
int pack_check(const struct pack_args *args, const struct scan *scan);

#endif
