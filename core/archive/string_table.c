/* SPDX-License-Identifier: MIT */
/*
 * Names are found by hash, but mostly they need not be looked for: entries list the same
 * architectures in the same order again and again, so that each string remembers which one
 * followed it.
 */
#include "string_table.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/alloc.h"
#include "core/base/text.h"
#include "core/base/hash.h"

static uint64_t hash_number(const void *arg, uint32_t number)
{
	const struct kp_span *s = &((const struct kp_string_table *)arg)->texts[number];

	return kp_slot_hash(s->data, s->size, 0);
}

/* The slot of TEXT, or the free slot where it belongs; the table has slots. */
static uint32_t *find_slot(const struct kp_string_table *t, struct kp_span text)
{
	uint32_t *slot = kp_slots_first(&t->slots, kp_slot_hash(text.data, text.size, 0));

	while (*slot && !kp_span_eq(t->texts[*slot - 1], text))
		slot = kp_slots_next(&t->slots, slot);
	return slot;
}

bool kp_string_known(const struct kp_string_table *t, struct kp_span text)
{
	return t->slots.size && *find_slot(t, text);
}

enum kp_strings_result kp_string_other(struct kp_string_table *t,
				       struct kp_string_chain *chain, struct kp_span text,
				       uint16_t *number)
{
	uint32_t *slot;

	if (!kp_slots_grow(&t->slots, hash_number, t))
		return KP_STRINGS_NO_MEMORY;
	slot = find_slot(t, text);
	if (!*slot) {
		/* entries have 16 bits for a number */
		if (t->n == KP_STRINGS_MAX)
			return KP_STRINGS_FULL;
		if (!kp_grow(&t->texts, t->n, &t->cap, sizeof(*t->texts)) ||
		    !kp_grow(&t->info, t->n, &t->info_cap, sizeof(*t->info)))
			return KP_STRINGS_NO_MEMORY;
		t->texts[t->n] = text;
		t->info[t->n] = (struct kp_string_info){
			.is_name = text.size && text.size <= KP_NAME_MAX &&
				   kp_text_ok(text)};
		kp_slots_put(&t->slots, slot, (uint32_t)t->n++);
	}
	*number = (uint16_t)(*slot - 1);
	if (chain->begun)
		t->info[chain->last].follows = *number;
	*chain = (struct kp_string_chain){*number, true};
	return KP_STRINGS_OK;
}

void kp_string_table_fini(struct kp_string_table *t)
{
	free(t->texts);
	free(t->info);
	free(t->slots.slots);
	*t = (struct kp_string_table){0};
}
