/* SPDX-License-Identifier: MIT */
/* Opens a directory on a way that no other user can exchange meanwhile. */
#ifndef FS_BASE_FIRM_PATH_H
#define FS_BASE_FIRM_PATH_H

#include <stdbool.h>

/*
 * Open what PATH leads to with O_PATH, without triggering an automount there.  A link is
 * only followed where nobody but root can put another: in a directory that is root's and
 * not writable for others, or in a sticky one if the link is root's; else -1 with ELOOP.
 * -1: see errno; EREMOTE: another user has mounted a FUSE file system there.  FIRM: only
 * root can exchange any component of the absolute path PATH.
 */
int firm_path_open(const char *path, bool *firm);

#endif
