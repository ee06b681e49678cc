/* SPDX-License-Identifier: MIT */
/* Shows the files that packing took out of a tree at their old places: see in_place.c. */
#ifndef FS_MOUNT_IN_PLACE_H
#define FS_MOUNT_IN_PLACE_H

#include "settings.h"

/*
 * Mount the sources of S wherever the tree S->mountpoint lacks files of them, with MOUNT, which
 * makes one mount in the background and returns an exit status.  Prints each place.  What is
 * mounted already stays; if a mount fails, all that this call made is unmounted again.
 * Every failure is logged.
 */
enum end in_place_mount(struct settings *s, int (*mount)(struct settings *s));

/*
 * Unmount all that kpackfs has mounted in the tree, lazily what is in use.  Nothing mounted is a
 * success.
 */
enum end in_place_undo(struct settings *s);

#endif
