/* SPDX-License-Identifier: MIT */
/* Bring trees to what their policies say. */
#ifndef PACKER_POLICY_APPLY_H
#define PACKER_POLICY_APPLY_H

#include "tree.h"

enum apply_what {
	APPLY_ALL,
	APPLY_MOUNTS,  /* only mount */
	APPLY_UNMOUNT, /* only unmount */
};

struct apply {
	struct policy_places places;
	enum apply_what what;
	bool no_mounts; /* do not mount */
	bool dry;       /* change nothing: print what would be done */
	bool quiet;
};

/*
 * Apply the policies of LIST; prints a line for each tree.  Returns an exit status, after
 * reporting faults; a fault of one tree does not keep the others from their turn.
 */
int apply_policies(const struct apply *a, const struct policies *list);

#endif
