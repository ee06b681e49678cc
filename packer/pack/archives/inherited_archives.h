/* SPDX-License-Identifier: MIT */
/* The archives that a tree has already, wanted in the tree that is made from it. */
#ifndef PACKER_PACK_ARCHIVES_INHERITED_ARCHIVES_H
#define PACKER_PACK_ARCHIVES_INHERITED_ARCHIVES_H

#include "core/base/errors.h"

/*
 * Bring every *.kpack of the directory FROM into TO.  What stands in TO already stays, and must
 * hold every entry of the one in FROM: then nothing that a marker names is lost.
 * INVALID_ARGUMENT: it does not, or the file of a kernel database would have other bytes in one
 * archive than in another.  IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t inherit_archives(const char *from, const char *to,
			       struct kpackx_error *why);

/* Is it one of those by its NAME? */
bool inherit_is_archive(const char *name);

#endif
