/* SPDX-License-Identifier: MIT */
#include "string_table.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/alloc.h"
#include "core/base/text.h"
#include "core/base/hash.h"

static uint64_t hash_string(struct kp_span s)
{
	return kp_slot_hash(s.data, s.size, 0);
}

static uint64_t hash_number(const void *arg, uint32_t number)
{
	const struct kp_string_table *t = arg;

	return hash_string(t->texts[number]);
}

static enum kp_strings_result add_string(struct kp_string_table *t, struct kp_span text,
					 uint16_t *number)
{
	if (t->n == KP_STRINGS_MAX)
		return KP_STRINGS_FULL;
	if (!kp_grow(&t->texts, t->n, &t->cap, sizeof(*t->texts)) ||
	    !kp_grow(&t->info, t->n, &t->info_cap, sizeof(*t->info)))
		return KP_STRINGS_NO_MEMORY;
	t->texts[t->n] = text;
	t->info[t->n] = (struct kp_string_info){
		.is_name = text.size && text.size <= KP_NAME_MAX && kp_text_ok(text)};
	*number = (uint16_t)t->n++;
	return KP_STRINGS_OK;
}

/* The slot of TEXT, or the free slot where it belongs; the table has slots. */
static uint32_t *find_slot(const struct kp_string_table *t, struct kp_span text)
{
	uint32_t *slot = kp_slots_first(&t->slots, hash_string(text));

	while (*slot && !kp_span_eq(t->texts[*slot - 1], text))
		slot = kp_slots_next(&t->slots, slot);
	return slot;
}

static enum kp_strings_result find_string(struct kp_string_table *t, struct kp_span text,
					  uint16_t *number)
{
	enum kp_strings_result result;
	uint32_t *slot;

	if (!kp_slots_grow(&t->slots, hash_number, t))
		return KP_STRINGS_NO_MEMORY;
	slot = find_slot(t, text);
	if (*slot) {
		*number = (uint16_t)(*slot - 1);
		return KP_STRINGS_OK;
	}
	result = add_string(t, text, number);
	if (result == KP_STRINGS_OK)
		kp_slots_put(&t->slots, slot, *number);
	return result;
}

bool kp_string_known(const struct kp_string_table *t, struct kp_span text)
{
	return t->slots.size && *find_slot(t, text);
}

enum kp_strings_result kp_string_other(struct kp_string_table *t,
				       struct kp_string_chain *chain, struct kp_span text,
				       uint16_t *number)
{
	enum kp_strings_result result = find_string(t, text, number);

	if (result != KP_STRINGS_OK)
		return result;
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
