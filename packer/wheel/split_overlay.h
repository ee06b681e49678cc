/* SPDX-License-Identifier: MIT */
/*
 * Find the overlay: the directory of a wheel that has all its device code and gets
 * archives.
 */
#ifndef PACKER_WHEEL_SPLIT_OVERLAY_H
#define PACKER_WHEEL_SPLIT_OVERLAY_H

#include "packer/library/library.h"
#include "wheel_in.h"

/*
 * Find the overlay of W, which is unpacked into TREE.  GIVEN is the overlay; if it is
 * NULL, the overlay is the top-level directory that has all device code, or else the
 * wheel's root, "".  Unless it is the root, the overlay is moved to MOVED.  The caller
 * frees *OVERLAY.
 * INVALID_ARGUMENT: GIVEN is not a directory of the wheel, or device code is outside of
 * it; device code is in a directory whose files an installer moves.
 */
kpack_error_t wheel_overlay_find(const struct wheel_in *w, const char *tree,
				 const char *given, const struct library_set *libraries,
				 const char *moved, char **overlay,
				 struct kpackx_error *why);

#endif
