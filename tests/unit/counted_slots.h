/* SPDX-License-Identifier: MIT */
/*
 * Counts the steps from slot to slot of a table's searches, for names whose hashes were
 * made equal.  To be included before the .c file of the table, which the test includes.
 */
#ifndef COUNTED_SLOTS_H
#define COUNTED_SLOTS_H

#include "core/base/slots.h"

/*
 * The words of XXH3's secret that are combined with bytes 0 to 7 of 17 to 128 bytes, and
 * with bytes 16 to 23 of 32.  Where bytes equal such a word, plus the seed, XXH3 multiplies
 * the eight bytes that follow by zero: their values do not matter.
 */
#define XXH3_WORD_0 UINT64_C(0xbe4ba423396cfeb8)
#define XXH3_WORD_16 UINT64_C(0xdb979083e96dd4de)

static _Thread_local size_t steps; /* in all searches */

static inline uint32_t *counted_next(const struct kp_slots *s, const uint32_t *slot)
{
	steps++;
	return kp_slots_next(s, slot);
}

#define kp_slots_next counted_next

#endif
