/* SPDX-License-Identifier: MIT */
/* Decoding one frame of a shared archive. */
#ifndef KP_CORE_SHARED_FRAME_H
#define KP_CORE_SHARED_FRAME_H

#include "shared.h"

/*
 * Decode a frame into BUF, which has room for its bytes.  PREFIX is the dictionary; empty:
 * none.  Errors of kp_shared_read.
 */
kpack_error_t kp_frame_decode(const struct kp_shared *s, uint32_t frame,
			      struct kp_span prefix, uint8_t *buf,
			      struct kpackx_error *why);

#endif
