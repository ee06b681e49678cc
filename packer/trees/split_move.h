/* SPDX-License-Identifier: MIT */
/* Move files from the generic tree to the trees of architectures, by renaming them. */
#ifndef PACKER_SPLIT_MOVE_H
#define PACKER_SPLIT_MOVE_H

#include "split.h"

/*
 * Move the files that I's partition assigns to other trees, and make their directories
 * there.  Directories that become empty are removed.  Hard links between output trees
 * become separate files, because each output tree can be installed alone.  Errors name
 * the file.
 */
kpack_error_t split_move(struct split *s, const struct split_prefix *i,
			 struct kpackx_error *why);

/*
 * After everything is moved: set the attributes of directories and write the manifests.
 */
kpack_error_t split_finish(struct split *s, struct kpackx_error *why);

/*
 * True if the output tree of PART gets a file or an archive from the prefix; always true
 * for the generic one of a packed prefix.
 */
bool split_contributes(const struct split_prefix *i, const char *part);

#endif
