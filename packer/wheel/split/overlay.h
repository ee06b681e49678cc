/* SPDX-License-Identifier: MIT */
/* The directory of a wheel in which all its device code is: where its archives go. */
#ifndef PACKER_WHEEL_SPLIT_OVERLAY_H
#define PACKER_WHEEL_SPLIT_OVERLAY_H

#include "packer/library/library.h"
#include "packer/wheel/file/in.h"

/*
 * TREE is the unpacked wheel W.  GIVEN is the overlay, or NULL: then it is the top-level
 * directory that has all, or else the wheel's root, which is "".  Unless it is that, it is
 * moved to MOVED.  The caller frees *OVERLAY.
 * INVALID_ARGUMENT: GIVEN is no directory of the wheel, or something is outside of it;
 * something is where an installer moves it.
 */
kpack_error_t wheel_overlay_find(const struct wheel_in *w, const char *tree,
				 const char *given, const struct library_set *libraries,
				 const char *moved, char **overlay,
				 struct kpackx_error *why);

#endif
