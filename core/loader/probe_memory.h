/* SPDX-License-Identifier: MIT */
/*
 * Reading memory of which only the address is known: a marker's pointer comes without a
 * size.  The kernel copies, so that nothing faults where the mapping, or the file behind
 * it, ends.
 */
#ifndef KP_CORE_LOADER_PROBE_MEMORY_H
#define KP_CORE_LOADER_PROBE_MEMORY_H

#include <stddef.h>
#include "core/base/errors.h"

/*
 * Copy up to SIZE bytes from AT; *got is how many are readable in a row, 0 for none.
 * Thread-safe.  IO_ERROR: the kernel offers no way.
 */
kpack_error_t kp_probe(const void *at, void *buf, size_t size, size_t *got,
		       struct kpackx_error *why);

#endif
