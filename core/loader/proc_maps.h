/* SPDX-License-Identifier: MIT */
/* What is mapped into this process, from /proc/self/maps. */
#ifndef KP_CORE_LOADER_PROC_MAPS_H
#define KP_CORE_LOADER_PROC_MAPS_H

#include <stdint.h>
#include "core/base/errors.h"

/*
 * The file that is mapped at ADDRESS, and which of its bytes: the caller frees *path.
 * The kernel writes a newline of a name as \012 and adds " (deleted)" to the name of a
 * file that is gone or was replaced, without a way to tell these from the same bytes in a
 * name.  A spelling that leads to the mapped inode is believed; if none does, the name is
 * the one that the file had, in the directory where it was.  Thread-safe.
 * PATH_DISCOVERY_FAILED: nothing is mapped there, or no file is (the heap, a stack, the
 * zeroed part of a library behind its data), or /proc cannot be read.  OUT_OF_MEMORY.
 */
kpack_error_t kp_maps_find(const void *address, char **path, uint64_t *offset,
			   struct kpackx_error *why);

#endif
