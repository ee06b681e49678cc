/* SPDX-License-Identifier: MIT */
#include "slots.h"
#include <stdlib.h>
#include "alloc.h"

#define SIZE_MIN 64

bool kp_slots_reserve(struct kp_slots *s, size_t n)
{
	s->size = SIZE_MIN;
	while (s->size / 2 < n)
		s->size *= 2;
	s->slots = kp_large_zalloc(s->size, sizeof(*s->slots));
	return s->slots;
}

bool kp_slots_grow(struct kp_slots *s, uint64_t (*hash)(const void *arg, uint32_t number),
		   const void *arg)
{
	struct kp_slots bigger = {.used = s->used};
	uint32_t *slot;

	if (2 * s->used < s->size)
		return true;
	bigger.size = s->size ? 2 * s->size : SIZE_MIN;
	bigger.slots = kp_large_zalloc(bigger.size, sizeof(*bigger.slots));
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
