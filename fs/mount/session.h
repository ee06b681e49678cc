/* SPDX-License-Identifier: MIT */
/* The server: mounts, drops its privileges, and answers requests until the mount ends. */
#ifndef FS_MOUNT_SESSION_H
#define FS_MOUNT_SESSION_H

#include "settings.h"
#include "fs/tree/edition.h"

/*
 * Serve the surveys that come over LINK, which is closed in the end.  When the mount works,
 * the supervisor is told.  Signals that ask for an end or a reload are passed on to it.
 */
enum end session_serve(struct settings *s, int link);

/*
 * Whether each file of the directory DIR, which has the name PATH in messages, is in E at
 * the same path, with the same size and, if its entry has a hash, the same bytes; else
 * false, after reporting the first file for which this does not hold.  Mounts below DIR
 * are not looked at, nor a DIR that a FUSE file system shows.
 */
bool covered_check(int dir, const char *path, const struct edition *e);

#endif
