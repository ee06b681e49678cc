/* SPDX-License-Identifier: MIT */
/*
 * The frames of all shared archives of this process that are decoded: the most recently
 * used ones stay.  A frame is decoded once for all threads that wait for it.
 */
#ifndef KP_CORE_SHARED_POOL_H
#define KP_CORE_SHARED_POOL_H

#include "shared.h"

struct kp_frame; /* decoded */

/*
 * Let the pool keep MOST bytes from now on, besides the frames in use; initially
 * KP_POOL_BYTES.  Frames beyond MOST are freed at once.  Later, the dictionary that was used
 * last is always kept, and at least half of MOST is for blocks, so that the pool may have up
 * to one dictionary more.
 */
#define KP_POOL_BYTES (UINT64_C(64) << 20)
void kp_pool_limit(uint64_t most);

/* Get frame NUMBER of S decoded, until put.  Errors of kp_shared_read. */
kpack_error_t kp_pool_get(const struct kp_shared *s, uint32_t number,
			  struct kp_frame **out, struct kpackx_error *why);
const uint8_t *kp_frame_bytes(const struct kp_frame *f);
void kp_pool_put(struct kp_frame *f);

/* Free the frames of S, none of which is in use. */
void kp_pool_forget(const struct kp_shared *s);

/* The bytes of all frames in the pool. */
uint64_t kp_pool_held(void);

#endif
