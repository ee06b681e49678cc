/* SPDX-License-Identifier: MIT */
/* What this process has in its memory: markers, and the files that are mapped there. */
#ifndef KP_CORE_LOADER_PROCESS_H
#define KP_CORE_LOADER_PROCESS_H

#include <stddef.h>
#include <stdint.h>
#include "core/base/errors.h"
#include "core/host/marker.h"

/*
 * Parse the marker at the address AT of this process.  The caller frees OUT with
 * kp_marker_fini.  INVALID_METADATA: no marker, or no readable memory.  OUT_OF_MEMORY.
 */
kpack_error_t kp_marker_read_at(const void *at, struct kp_marker *out,
				struct kpackx_error *why);

/*
 * Reading memory of unknown size: a marker's pointer comes without a size.  The kernel
 * copies the bytes, so that no fault occurs where the mapping or its file ends.
 * Copy up to SIZE bytes from AT; *GOT becomes the number of contiguous readable bytes,
 * which may be 0.  Thread-safe.  IO_ERROR: the kernel forbids all ways to copy.
 */
kpack_error_t kp_probe(const void *at, void *buf, size_t size, size_t *got,
		       struct kpackx_error *why);

/*
 * Find the file that is mapped at ADDRESS, by /proc/self/maps, and the offset in it; the caller frees *PATH.
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
