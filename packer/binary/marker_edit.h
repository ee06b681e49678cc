/* SPDX-License-Identifier: MIT */
/* A marker being made up from options. */
#ifndef PACKER_BINARY_MARKER_EDIT_H
#define PACKER_BINARY_MARKER_EDIT_H

#include "core/binary/marker.h"

/* May TEXT be a name or a path?  Archives have no others, and MessagePack wants UTF-8. */
bool marker_text_ok(const char *text);

/* Replace the name, or add a path; copies are made.  OUT_OF_MEMORY. */
kpack_error_t marker_set_name(struct kp_marker *marker, const char *name,
			      struct kpackx_error *why);
kpack_error_t marker_add_path(struct kp_marker *marker, const char *path,
			      struct kpackx_error *why);

/* OUT becomes FROM with what CHANGES has: its name, all its paths. */
kpack_error_t marker_merge(const struct kp_marker *from, const struct kp_marker *changes,
			   struct kp_marker *out, struct kpackx_error *why);

/* The same name and the same paths in the same order? */
bool marker_same(const struct kp_marker *a, const struct kp_marker *b);

#endif
