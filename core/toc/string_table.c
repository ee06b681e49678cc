/* SPDX-License-Identifier: MIT */
#include "string_table.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/alloc.h"
#include "core/base/text.h"
#include "core/base/hash.h"

static uint64_t hash_string(struct kp_span s)
{
	return kp_hash64(s.data, s.size, 0);
}

/* Double the slots and move every string to its new slot. */
static bool grow_slots(struct kp_string_table *t)
{
	size_t n = t->n_slots ? 2 * t->n_slots : 64;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return false;
	free(t->slots);
	t->slots = slots;
	t->n_slots = n;
	for (size_t i = 0; i < t->n; i++) {
		size_t at = hash_string(t->texts[i]) & (n - 1);
		while (slots[at])
			at = (at + 1) & (n - 1);
		slots[at] = (uint32_t)i + 1;
	}
	return true;
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
	size_t at = hash_string(text) & (t->n_slots - 1);

	while (t->slots[at] && !kp_span_eq(t->texts[t->slots[at] - 1], text))
		at = (at + 1) & (t->n_slots - 1);
	return &t->slots[at];
}

static enum kp_strings_result find_string(struct kp_string_table *t, struct kp_span text,
					  uint16_t *number)
{
	enum kp_strings_result result = KP_STRINGS_OK;
	uint32_t *slot;

	if (2 * t->n >= t->n_slots && !grow_slots(t))
		return KP_STRINGS_NO_MEMORY;
	slot = find_slot(t, text);
	if (*slot)
		*number = (uint16_t)(*slot - 1);
	else
		result = add_string(t, text, number);
	if (result == KP_STRINGS_OK)
		*slot = (uint32_t)*number + 1;
	return result;
}

bool kp_string_known(const struct kp_string_table *t, struct kp_span text)
{
	return t->n_slots && *find_slot(t, text);
}

enum kp_strings_result kp_string_next(struct kp_string_table *t,
				      struct kp_string_chain *chain, struct kp_span text,
				      uint16_t *number)
{
	enum kp_strings_result result;

	if (chain->begun) {
		*number = t->info[chain->last].follows;
		if (kp_span_eq(t->texts[*number], text)) {
			chain->last = *number;
			return KP_STRINGS_OK;
		}
	}
	result = find_string(t, text, number);
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
	free(t->slots);
	*t = (struct kp_string_table){0};
}
