/* SPDX-License-Identifier: MIT */
/* Looks at a mount from outside, for --status. */
#ifndef FS_CLI_STATUS_H
#define FS_CLI_STATUS_H

/*
 * Print what the mount at MOUNTPOINT says of itself.  0 when all is well with it; 1 when
 * something is not, or there is no mount of ours, or it does not answer, which is logged.
 */
int status_show(const char *mountpoint);

#endif
