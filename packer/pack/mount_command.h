/* SPDX-License-Identifier: MIT */
/* The command that makes all packed files of a tree visible at their paths again. */
#ifndef PACKER_PACK_MOUNT_COMMAND_H
#define PACKER_PACK_MOUNT_COMMAND_H

#include "packer/scan/scan.h"

/* A tree that is completely written. */
struct mount_tree {
	const char *root;
	const char *archives; /* the archives' directory */
	const char *group, *prefix;
	const struct scan *scan; /* says which directories were empty before packing */
};

/*
 * Set *COMMAND to the command for every file that is in an archive and not in the tree,
 * whichever run packed it, on the heap; NULL: there is no such file.  See mount_places.h.
 */
kpack_error_t mount_line(const struct mount_tree *tree, char **command,
			 struct kpackx_error *why);

#endif
