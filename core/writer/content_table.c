/* SPDX-License-Identifier: MIT */
#include "content_table.h"
#include <stdlib.h>
#include <string.h>
#include "core/base/alloc.h"
#include "core/base/hash.h"

struct kp_content_row {
	struct kp_content content;
	uint32_t ordinal;
};

static bool same_content(const struct kp_content *a, const struct kp_content *b)
{
	return a->size == b->size && a->chunk == b->chunk &&
	       memcmp(a->hash, b->hash, sizeof(a->hash)) == 0;
}

static uint64_t hash_content(const struct kp_content *c)
{
	return kp_slot_hash(c->hash, sizeof(c->hash), c->size);
}

/* The slot of C's row, or the free slot where it belongs; the table has slots. */
static uint32_t *find_slot(const struct kp_content_table *t, const struct kp_content *c)
{
	uint32_t *slot = kp_slots_first(&t->slots, hash_content(c));

	while (*slot && !same_content(&t->rows[*slot - 1].content, c))
		slot = kp_slots_next(&t->slots, slot);
	return slot;
}

static uint64_t hash_row(const void *arg, uint32_t row)
{
	const struct kp_content_table *t = arg;

	return hash_content(&t->rows[row].content);
}

bool kp_content_table_find(const struct kp_content_table *t, const struct kp_content *c,
			   uint32_t *ordinal)
{
	uint32_t row = t->slots.size ? *find_slot(t, c) : 0;

	if (row)
		*ordinal = t->rows[row - 1].ordinal;
	return row;
}

bool kp_content_table_add(struct kp_content_table *t, const struct kp_content *c,
			  uint32_t ordinal)
{
	uint32_t *slot;

	if (!kp_slots_grow(&t->slots, hash_row, t) ||
	    !kp_grow(&t->rows, t->n, &t->cap, sizeof(*t->rows)))
		return false;
	slot = find_slot(t, c);
	if (!*slot) {
		kp_slots_put(&t->slots, slot, (uint32_t)t->n);
		t->rows[t->n++] = (struct kp_content_row){*c, ordinal};
	}
	return true;
}

void kp_content_table_fini(struct kp_content_table *t)
{
	free(t->rows);
	free(t->slots.slots);
	*t = (struct kp_content_table){0};
}
