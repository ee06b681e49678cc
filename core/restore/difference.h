/* SPDX-License-Identifier: MIT */
/*
 * A compressed container as its difference from its payload: a zstd frame whose prefix is
 * the payload.  What the container's compressor left as it was - objects that are
 * compressed already, literals - is in the payload, too.  To undo it no compressor is
 * needed, so that the result is the same with every version of zstd.
 */
#ifndef KP_CORE_LAYOUT_DIFFERENCE_H
#define KP_CORE_LAYOUT_DIFFERENCE_H

#include "core/base/errors.h"
#include "core/base/span.h"

/*
 * Compute what ORIGINAL has besides PAYLOAD; at most a little more than ORIGINAL.  The
 * caller frees *OUT.  The only error is OUT_OF_MEMORY.
 */
kpack_error_t kp_difference_make(struct kp_span payload, struct kp_span original,
				 uint8_t **out, size_t *size, struct kpackx_error *why);

/*
 * Write the SIZE bytes of the original to OUT.
 * DECOMPRESSION_FAILED: DIFFERENCE is damaged, or another one.  OUT_OF_MEMORY.
 */
kpack_error_t kp_difference_apply(struct kp_span payload, struct kp_span difference,
				  uint8_t *out, size_t size, struct kpackx_error *why);

#endif
