/* SPDX-License-Identifier: MIT */
/* Bring trees to what their policies say, and print how far they are. */
#ifndef PACKER_POLICY_APPLY_H
#define PACKER_POLICY_APPLY_H

#include "policy_tree.h"

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
	bool named; /* the policies are those that the user named */
};

/*
 * Apply the policies of LIST; prints a line for each tree.  Returns an exit status, after
 * reporting faults; a fault of one tree does not keep the others from their turn.
 */
int apply_policies(const struct apply *a, const struct policies *list);

/*
 * Run thin and pack, as the policy says, for the files of T that are new to its state, which
 * gets them: first as planned, and on the disk, before anything is changed.  What a command
 * refuses is refused before anything is changed, too.  DRY: change nothing, and put what
 * would be changed into the state.  Returns an exit status, after reporting faults; then
 * the plan stays in the state.
 */
int work_on(struct policy_tree *t, bool dry);

/*
 * Print a paragraph for each policy, or with JSON one array of objects.  Returns
 * EXIT_FAULT if a tree is not as its policy says, or cannot be read.
 */
int status_print(const struct policies *list, const struct policy_places *places,
		 bool json);

/* Print the systemd unit that mounts at boot, if policies of LIST, in DIR, want it. */
bool unit_print(const char *dir, const struct policies *list);

#endif
