/* SPDX-License-Identifier: MIT */
#include "anchors.h"
#include <stdlib.h>

/* 128 MiB: for about 4 GB of unique bytes. */
static const size_t SIZE_FIRST = 1 << 12, SIZE_MAX_SLOTS = 1 << 23;

/*
 * Slots that are tried, and slots that are tried when the table can grow no more.  A table
 * that is at most half full has no such long run of slots, unless the data was made for
 * one; which anchors are found must not depend on a random number.
 */
enum { TRIES = 256, TRIES_LAST = 8 };

static struct kp_anchor *slot_for(const struct kp_anchors *a, uint64_t hash)
{
	size_t mask = a->size - 1, first = (size_t)(hash >> 32) & mask;
	size_t tries = a->size == SIZE_MAX_SLOTS ? TRIES_LAST : TRIES;

	for (size_t i = 0; i <= tries; i++) {
		struct kp_anchor *s = &a->slots[(first + i) & mask];

		if (!s->hash || s->hash == hash)
			return s;
	}
	return &a->slots[first];
}

static bool grow_slots(struct kp_anchors *a)
{
	struct kp_anchors more = {.size = a->size ? 2 * a->size : SIZE_FIRST,
				  .used = a->used};

	more.slots = calloc(more.size, sizeof(*more.slots));
	if (!more.slots)
		return false;
	for (size_t i = 0; i < a->size; i++)
		if (a->slots[i].hash)
			*slot_for(&more, a->slots[i].hash) = a->slots[i];
	free(a->slots);
	*a = more;
	return true;
}

bool kp_anchors_find(const struct kp_anchors *a, uint64_t hash, uint64_t *pos)
{
	const struct kp_anchor *s = a->size ? slot_for(a, hash | 1) : NULL;

	if (!s || s->hash != (hash | 1))
		return false;
	*pos = s->pos;
	return true;
}

bool kp_anchors_put(struct kp_anchors *a, uint64_t hash, uint64_t pos)
{
	struct kp_anchor *s;

	if (2 * a->used >= a->size && a->size < SIZE_MAX_SLOTS && !grow_slots(a))
		return false;
	s = slot_for(a, hash | 1);
	a->used += !s->hash;
	*s = (struct kp_anchor){hash | 1, pos};
	return true;
}

void kp_anchors_fini(struct kp_anchors *a)
{
	free(a->slots);
	*a = (struct kp_anchors){0};
}
