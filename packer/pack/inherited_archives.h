/* SPDX-License-Identifier: MIT */
/* Inherited archives: those of the input tree, which the output tree needs, too. */
#ifndef PACKER_PACK_ARCHIVES_INHERITED_ARCHIVES_H
#define PACKER_PACK_ARCHIVES_INHERITED_ARCHIVES_H

#include "core/base/errors.h"

/*
 * Copy every *.kpack of the directory FROM to TO.  An archive that already exists in TO
 * stays, and must hold every entry of the one in FROM, so that nothing that a marker
 * names is lost.
 * INVALID_ARGUMENT: it does not, or a file of a kernel database would have other bytes in
 * one archive than in another.  IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t inherit_archives(const char *from, const char *to,
			       struct kpackx_error *why);

#endif
