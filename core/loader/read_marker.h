/* SPDX-License-Identifier: MIT */
/* The marker of a binary that is loaded in this process. */
#ifndef KP_CORE_LOADER_READ_MARKER_H
#define KP_CORE_LOADER_READ_MARKER_H

#include "core/elf/marker.h"

/*
 * Parse the marker at the address AT of this process.  The caller frees OUT with
 * kp_marker_fini.  INVALID_METADATA: no marker, or no readable memory.  OUT_OF_MEMORY.
 */
kpack_error_t kp_marker_read_at(const void *at, struct kp_marker *out,
				struct kpackx_error *why);

#endif
