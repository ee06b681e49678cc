/* SPDX-License-Identifier: MIT */
/* Files of the mount point that a mount would cover, and does not show itself. */
#ifndef FS_SERVER_COVERED_H
#define FS_SERVER_COVERED_H

#include <stdbool.h>
#include "fs/tree/edition.h"

/*
 * Whether each file of the directory DIR, which has the name PATH in messages, is in E at
 * the same path, with the same size and, if its entry has a hash, the same bytes; else
 * false, after reporting the first file for which this does not hold.  Mounts below DIR
 * are not looked at, nor a DIR that a FUSE file system shows.
 */
bool covered_check(int dir, const char *path, const struct edition *e);

#endif
