/* SPDX-License-Identifier: MIT */
/*
 * Converted binaries whose marker names the key of a binary that is packed: what a killed
 * run converted at some of its paths and at others did not, or what is in the way.
 */
#ifndef PACKER_PACK_TREE_INTERRUPTED_H
#define PACKER_PACK_TREE_INTERRUPTED_H

#include "converter.h"

/*
 * Look at the converted binaries of C's scan that lead to archives of its group.  One that
 * names a key of the plan and looks like the same file, some moments later, joins its
 * paths: that it really is, the converter finds out.  To be called when the plan's
 * objects were read and before archives are published.
 * INVALID_ARGUMENT: its objects are others, and would be replaced under that key; or
 * they would go to another archive than it names.
 */
kpack_error_t resume_join(const struct converter *c, struct kpackx_error *why);

#endif
