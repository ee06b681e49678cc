/* SPDX-License-Identifier: MIT */
/* One run of kpack thin, or of kpack pack, as a policy says it. */
#ifndef PACKER_POLICY_WORK_H
#define PACKER_POLICY_WORK_H

#include "tree.h"

/*
 * Change the files of T that are new to its state, which gets them: first as planned, and
 * on the disk, before anything is changed.  DRY: change nothing, and put what would be
 * changed into the state.  Returns an exit status, after reporting faults; then the plan
 * stays in the state.
 */
int work_on(struct policy_tree *t, bool dry);

#endif
