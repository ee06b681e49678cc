/* SPDX-License-Identifier: MIT */
/*
 * XXH3-128 for processors with AVX2, which only hash.c uses.  A state is the same as that of
 * libxxhash, which has promised its shape since 0.8.0.
 */
#ifndef KP_CORE_BASE_HASH_AVX2_H
#define KP_CORE_BASE_HASH_AVX2_H

#include <xxhash.h>

/* As XXH3_128bits and XXH3_128bits_update. */
XXH128_hash_t kp_hash_of_avx2(const void *data, size_t size);
void kp_hash_add_avx2(XXH3_state_t *state, const void *data, size_t size);

#endif
