/* SPDX-License-Identifier: MIT */
/*
 * Reading memory of unknown size: a marker's pointer comes without a size.  The kernel
 * copies the bytes, so that no fault occurs where the mapping or its file ends.
 */
#ifndef KP_CORE_LOADER_PROBE_MEMORY_H
#define KP_CORE_LOADER_PROBE_MEMORY_H

#include <stddef.h>
#include "core/base/errors.h"

/*
 * Copy up to SIZE bytes from AT; *GOT becomes the number of contiguous readable bytes,
 * which may be 0.  Thread-safe.  IO_ERROR: the kernel forbids all ways to copy.
 */
kpack_error_t kp_probe(const void *at, void *buf, size_t size, size_t *got,
		       struct kpackx_error *why);

#endif
