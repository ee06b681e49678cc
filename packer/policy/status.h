/* SPDX-License-Identifier: MIT */
/* Print how far the trees of policies are. */
#ifndef PACKER_POLICY_STATUS_H
#define PACKER_POLICY_STATUS_H

#include "tree.h"

/*
 * Print a paragraph for each policy, or with JSON one array of objects.  Returns
 * EXIT_FAULT if a tree is not as its policy says, or cannot be read.
 */
int status_print(const struct policies *list, const struct policy_places *places,
		 bool json);

#endif
