/* SPDX-License-Identifier: MIT */
/*
 * A layout that was read, settled: gaps become offsets, hashes go to their objects, and
 * all must fit together, in order and within bounds.
 */
#ifndef KP_CORE_LAYOUT_SETTLE_H
#define KP_CORE_LAYOUT_SETTLE_H

#include "internal.h"

/* Of LAYOUT with the bytes of "xxh3".  INVALID_METADATA: it does not fit. */
kpack_error_t kp_layout_settle(struct kp_layout *layout, struct kp_span hashes,
			       struct kpackx_error *why);

#endif
