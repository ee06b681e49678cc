/* SPDX-License-Identifier: MIT */
/* Build a marker from options. */
#ifndef PACKER_BINARY_MARKER_EDIT_H
#define PACKER_BINARY_MARKER_EDIT_H

#include "core/elf/marker.h"

/* Whether TEXT can be a name or a path, for archives and as MessagePack's UTF-8. */
bool marker_text_ok(const char *text);

/* Replace the name, or add a path; the strings are copied. */
void marker_set_name(struct kp_marker *marker, const char *name);
void marker_add_path(struct kp_marker *marker, const char *path);

/* OUT is FROM with the name and the paths of CHANGES, if CHANGES has any. */
void marker_merge(const struct kp_marker *from, const struct kp_marker *changes,
		  struct kp_marker *out);

#endif
