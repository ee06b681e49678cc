/* SPDX-License-Identifier: MIT */
/*
 * What mount(8) and mount.fuse3 make of a command line, and what fuse_opt would: mended
 * before it is parsed.
 */
#ifndef FS_CLI_MOUNT_ARGS_H
#define FS_CLI_MOUNT_ARGS_H

#include <stdbool.h>

/*
 * Take out of ARGV, whose strings are changed, the rw that nobody wrote, and -t TYPE of a
 * HELPER of mount(8).  In arch=LIST the commas, which would end it, become semicolons.
 */
void mount_args_mend(int *argc, char **argv, bool helper);

#endif
