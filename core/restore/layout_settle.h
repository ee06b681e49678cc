/* SPDX-License-Identifier: MIT */
/*
 * Settling a parsed layout: gaps become offsets, hashes are assigned to their objects,
 * and all parts are checked: they must be in order and within bounds.
 */
#ifndef KP_CORE_LAYOUT_SETTLE_H
#define KP_CORE_LAYOUT_SETTLE_H

#include "layout_internal.h"

/* Settle LAYOUT; HASHES is the value of "xxh3".  INVALID_METADATA: a check failed. */
kpack_error_t kp_layout_settle(struct kp_layout *layout, struct kp_span hashes,
			       struct kpackx_error *why);

#endif
