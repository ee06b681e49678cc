/* SPDX-License-Identifier: MIT */
/* Compiled with -mavx2 for x86-64, which makes xxHash use AVX2 here; see the Makefile. */
#define XXH_INLINE_ALL
#include "hash_avx2.h"

XXH128_hash_t kp_hash_of_avx2(const void *data, size_t size)
{
	return XXH3_128bits(data, size);
}

void kp_hash_add_avx2(XXH3_state_t *state, const void *data, size_t size)
{
	XXH3_128bits_update(state, data, size);
}
