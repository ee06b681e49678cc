/* SPDX-License-Identifier: MIT */
/* The systemd unit that mounts at boot what policies want to be mounted. */
#ifndef PACKER_POLICY_UNIT_H
#define PACKER_POLICY_UNIT_H

#include "policy.h"

/*
 * Returns the unit for the program PROGRAM and the policies of LIST, which are in DIR, on
 * the heap; NULL: none has to be mounted.
 */
char *unit_make(const char *program, const char *dir, const struct policies *list);
/* Print the unit for this program, if there is one. */
bool unit_print(const char *dir, const struct policies *list);

#endif
