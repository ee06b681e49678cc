/* SPDX-License-Identifier: MIT */
/* Mappings of this process, from /proc/self/maps. */
#ifndef KP_CORE_LOADER_PROC_MAPS_H
#define KP_CORE_LOADER_PROC_MAPS_H

#include <stdint.h>
#include "core/base/errors.h"

/*
 * Find the file that is mapped at ADDRESS and the offset in it; the caller frees *PATH.
 * The kernel writes a newline in a name as \012 and appends " (deleted)" to the name of a
 * file that is gone or was replaced; neither can be distinguished from the same bytes in
 * a name.  In an overlay over another overlay, the name begins at the upper one's mount
 * point.  The first reading of the name that leads to the mapped inode is returned; if
 * none does, the name that the file had when it existed.  Thread-safe.
 * PATH_DISCOVERY_FAILED: nothing is mapped at ADDRESS, or not a file (the heap, a stack,
 * the zeroed part of a library after its data), or /proc cannot be read.  OUT_OF_MEMORY.
 */
kpack_error_t kp_maps_find(const void *address, char **path, uint64_t *offset,
			   struct kpackx_error *why);

#endif
