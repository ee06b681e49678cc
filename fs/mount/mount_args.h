/* SPDX-License-Identifier: MIT */
/*
 * Repairs a command line before it is parsed: undoes what mount(8) and mount.fuse3 add,
 * and protects what fuse_opt would split.
 */
#ifndef FS_CLI_MOUNT_ARGS_H
#define FS_CLI_MOUNT_ARGS_H

#include <stdbool.h>

/*
 * Repair ARGV, whose strings are changed: remove an rw that the user did not write, and
 * the option -t TYPE if this is a HELPER of mount(8).  Commas in arch=LIST, which would
 * end the option, become semicolons.
 */
void mount_args_mend(int *argc, char **argv, bool helper);

#endif
