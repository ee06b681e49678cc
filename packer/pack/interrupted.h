/* SPDX-License-Identifier: MIT */
/*
 * Converted binaries whose marker names the key of a binary that is packed: a killed run
 * converted that binary at some of its paths only, or another binary is in the way.
 */
#ifndef PACKER_PACK_TREE_INTERRUPTED_H
#define PACKER_PACK_TREE_INTERRUPTED_H

#include "converter.h"

/*
 * Inspect the converted binaries of C's scan that lead to archives of its group.  One
 * that names a key of the plan, and looks like that binary after conversion, joins its
 * paths; the converter finds out whether it really is.  Call it after the plan's objects
 * are read and before the archives are published.
 * INVALID_ARGUMENT: the objects of a converted binary differ from those that would
 * replace them under its key, or these would go to other archives than its marker names.
 */
kpack_error_t resume_join(const struct converter *c, struct kpackx_error *why);

#endif
