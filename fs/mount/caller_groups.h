/* SPDX-License-Identifier: MIT */
/*
 * Answers the server's questions about the groups of users (group_query.h), from /proc.
 * A thread does this, because the supervisor itself may wait for disks.
 */
#ifndef FS_SUPERVISOR_CALLER_GROUPS_H
#define FS_SUPERVISOR_CALLER_GROUPS_H

#include <stdbool.h>
#include "fs/base/group_query.h"

/* Start to answer what comes from FD, which is closed at its end.  false: see errno. */
bool caller_groups_start(int fd);

/* The set of the groups in Q that its thread has; 0 if it is not as Q says. */
uint64_t caller_groups_had(const struct group_query *q);

#endif
