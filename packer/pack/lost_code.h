/* SPDX-License-Identifier: MIT */
/* What the selected GPUs keep of the code of binaries that are converted. */
#ifndef PACKER_PACK_TREE_LOST_CODE_H
#define PACKER_PACK_TREE_LOST_CODE_H

#include "converter.h"
#include "packer/archives/arch_filter.h"

/*
 * Report, and add to *FAULTS, each binary of C in which a GPU of FILTER finds code that it
 * can load, but none any more if only what FILTER selects is packed.  A GPU that the
 * binary has no code for has nothing to lose.  Unless QUIET, note where a GPU has only
 * SPIR-V.
 */
void lost_code_check(const struct converter *c, const struct arch_filter *filter,
		     bool quiet, size_t *faults);

#endif
