/* SPDX-License-Identifier: MIT */
/*
 * The parts of a tree that have code: binaries, and directories of kernel databases.  An
 * upgrade may bring a part that no longer supports one of the policy's GPUs.
 */
#ifndef PACKER_POLICY_PARTS_H
#define PACKER_POLICY_PARTS_H

#include "packer/thin/thin.h"
#include "tree.h"

/*
 * With WARN, warn of each GPU of FILTER that parts had code for before, by T's state, and
 * have none for now, as far as new files of SCAN say, which the state has not seen; then
 * put the parts into the state.  The name of a binary is its path up to ".so", so that
 * its next version has the same, and that of a directory ends with a slash.
 */
void parts_compare(struct policy_tree *t, const struct scan *scan,
		   const struct arch_filter *filter, bool warn);

#endif
