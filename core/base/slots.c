/* SPDX-License-Identifier: MIT */
/*
 * A table is never more than half full, so that a search ends after two or three slots.  Numbers
 * are never removed, so that a free slot always ends a search.  A growing table asks for each
 * hash again instead of storing it: half the memory, and the items are read once per doubling.
 */
#include "slots.h"
#include <stdlib.h>
#include "alloc.h"

#define SIZE_MIN 64

bool kp_slots_reserve(struct kp_slots *s, size_t n,
		      uint64_t (*hash)(const void *arg, uint32_t number), const void *arg)
{
	struct kp_slots bigger = {.used = s->used, .size = SIZE_MIN};
	uint32_t *slot;

	while (bigger.size / 2 < n)
		bigger.size *= 2;
	if (bigger.size <= s->size)
		return true;
	bigger.slots = kp_large_zeroed(bigger.size * sizeof(*bigger.slots));
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i < s->size; i++) {
		if (!s->slots[i])
			continue;
		slot = kp_slots_first(&bigger, hash(arg, s->slots[i] - 1));
		while (*slot)
			slot = kp_slots_next(&bigger, slot);
		*slot = s->slots[i];
	}
	free(s->slots);
	*s = bigger;
	return true;
}

bool kp_slots_grow(struct kp_slots *s, uint64_t (*hash)(const void *arg, uint32_t number),
		   const void *arg)
{
	return 2 * s->used < s->size || kp_slots_reserve(s, s->size, hash, arg);
}
