/* SPDX-License-Identifier: MIT */
/* kpack pack --check: pack nothing when files of a kernel database are missing. */
#ifndef PACKER_PACK_CHECK_H
#define PACKER_PACK_CHECK_H

#include "args.h"
#include "packer/scan/scan.h"

/*
 * Before anything is written, check that the scanned tree has every file that its kernel
 * databases need (closure.h), and report each fault.  Returns an exit status: 0 when
 * nothing is missing, or when ARGS do not ask for the check.
 */
int pack_check(const struct pack_args *args, const struct scan *scan);

#endif
