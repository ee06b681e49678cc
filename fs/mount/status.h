/* SPDX-License-Identifier: MIT */
/* Option --status: prints the status of a mount of another process. */
#ifndef FS_CLI_STATUS_H
#define FS_CLI_STATUS_H

/*
 * Print the status text of the mount at MOUNTPOINT.  0: it is healthy; 1: it is not, or
 * MOUNTPOINT is no mount of ours, or it does not answer; the last two are logged.
 */
int status_show(const char *mountpoint);

#endif
