/* SPDX-License-Identifier: MIT */
/*
 * A rolling hash: of its 64 bits, bit k depends on the last k + 1 bytes.  Where it has a
 * chosen value is decided by the content alone.
 */
#ifndef KP_CORE_WRITER_ROLLING_H
#define KP_CORE_WRITER_ROLLING_H

#include <stdint.h>

extern const uint64_t kp_rolling_table[256];

static inline uint64_t kp_rolling_add(uint64_t hash, uint8_t byte)
{
	return (hash << 1) + kp_rolling_table[byte];
}

#endif
