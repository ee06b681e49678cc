/* SPDX-License-Identifier: MIT */
/* The command that brings all packed files of a tree on the disk back. */
#ifndef PACKER_PACK_MOUNT_COMMAND_H
#define PACKER_PACK_MOUNT_COMMAND_H

#include "packer/pack/scan/scan.h"

/* A tree that is complete now. */
struct mount_tree {
	const char *root;
	const char *archives; /* their directory */
	const char *group, *prefix;
	const struct scan *scan; /* which directories were empty from the beginning */
};

/*
 * The command for every file that an archive has and that is not in the tree, from
 * whichever run, on the heap; NULL: there is none.  See mounts.h.
 */
kpack_error_t mount_line(const struct mount_tree *tree, char **command,
			 struct kpackx_error *why);

#endif
