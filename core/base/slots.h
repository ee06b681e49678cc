/* SPDX-License-Identifier: MIT */
/*
 * A hash table of numbers, such as the indexes of an array.  The caller compares what the
 * numbers stand for:
 *
 *	if (!kp_slots_grow(&s, hash_of_item, list))
 *		return no memory;
 *	slot = kp_slots_first(&s, hash);
 *	while (*slot && !is_equal(list, *slot - 1))
 *		slot = kp_slots_next(&s, slot);
 *	if (!*slot)
 *		kp_slots_put(&s, slot, number of a new item);
 *
 * Open addressing: uthash would need a header in each item, which takes 56 bytes, and ends
 * the process if memory runs out.
 *
 * HASH is a kp_slot_hash (hash.h), or names and contents can be chosen that share slots.
 */
#ifndef KP_CORE_BASE_SLOTS_H
#define KP_CORE_BASE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: empty.  The owner frees the slots. */
struct kp_slots {
	uint32_t *slots;   /* a number + 1; 0: free */
	size_t size, used; /* SIZE is a power of two, and at least twice USED */
};

/*
 * Make room for N numbers in all; HASH returns the hash of one, and may be NULL if the table
 * is empty.  false: out of memory.
 */
bool kp_slots_reserve(struct kp_slots *s, size_t n,
		      uint64_t (*hash)(const void *arg, uint32_t number),
		      const void *arg);

/* Make room for one more number.  false: out of memory. */
bool kp_slots_grow(struct kp_slots *s, uint64_t (*hash)(const void *arg, uint32_t number),
		   const void *arg);

/* The first slot for HASH in a table with room, and the one after SLOT. */
static inline uint32_t *kp_slots_first(const struct kp_slots *s, uint64_t hash)
{
	return &s->slots[hash & (s->size - 1)];
}

static inline uint32_t *kp_slots_next(const struct kp_slots *s, const uint32_t *slot)
{
	return &s->slots[((size_t)(slot - s->slots) + 1) & (s->size - 1)];
}

/* Put NUMBER into the free SLOT. */
static inline void kp_slots_put(struct kp_slots *s, uint32_t *slot, uint32_t number)
{
	*slot = number + 1;
	s->used++;
}

#endif
