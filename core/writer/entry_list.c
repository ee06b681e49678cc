/* SPDX-License-Identifier: MIT */
/*
 * Entries are looked up by name while they are added, in a hash table, and sorted once at the
 * end.  Each has one allocation for key, metadata and unknown pairs; architectures and types,
 * of which there are few, are kept once.
 *
 * An entry that is added again replaces the first one only if it has the same ordinal, that is,
 * the same bytes: two contents under one name would let the order of the input decide which of
 * them a loader gets.  BYTES is counted on the way, so that a writer learns before it adds an
 * entry that the table would pass what readers accept.
 */
#include "entry_list.h"
#include <stdlib.h>
#include "core/base/bounds.h"
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/base/hash.h"

/* --- texts, and finding by name ------------------------------------------------------- */

/* Return the list's own copy of TEXT; there are few distinct texts. */
static kpack_error_t intern_text(struct kp_entry_list *l, struct kp_string_chain *chain,
				 struct kp_span text, const char **out,
				 struct kpackx_error *why)
{
	struct kp_string_table *t = &l->strings;
	size_t known = t->n;
	uint16_t number;
	char *copy;

	switch (kp_string_next(t, chain, text, &number)) {
	case KP_STRINGS_FULL:
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "archive: more than %d architectures and types",
			       KP_STRINGS_MAX);
	case KP_STRINGS_NO_MEMORY:
		return kp_fail_memory(why, text.size, "a name");
	case KP_STRINGS_OK:
		break;
	}
	if (t->n > known) { /* so far the table borrows the caller's text */
		copy = strndup((const char *)text.data, text.size);
		t->texts[number] =
			(struct kp_span){(uint8_t *)copy, copy ? text.size : 0};
		if (!copy)
			return kp_fail_memory(why, text.size, "a name");
	}
	*out = (const char *)t->texts[number].data;
	return KPACK_SUCCESS;
}

static uint32_t hash_name(struct kp_span key, struct kp_span arch)
{
	uint64_t seed = kp_slot_hash(key.data, key.size, 0);

	return (uint32_t)kp_slot_hash(arch.data, arch.size, seed);
}

/* The slot of KEY and ARCH, or the free slot where they belong; the list has slots. */
static uint32_t *find_slot(const struct kp_entry_list *l, uint32_t hash,
			   struct kp_span key, struct kp_span arch)
{
	uint32_t *slot = kp_slots_first(&l->slots, hash);

	for (; *slot; slot = kp_slots_next(&l->slots, slot)) {
		const struct kp_listed *e = &l->items[*slot - 1];

		if (e->hash == hash && kp_span_is(key, e->key) &&
		    kp_span_is(arch, e->arch))
			break;
	}
	return slot;
}

static uint64_t hash_item(const void *arg, uint32_t item)
{
	const struct kp_entry_list *l = arg;

	return l->items[item].hash;
}

/* --- adding ------------------------------------------------------------------------- */

uint64_t kp_entry_list_bytes(struct kp_span key, struct kp_span arch,
			     const struct kp_writer_entry *entry)
{
	return 64 + key.size + 2 * arch.size + entry->type.size + entry->metadata.size +
	       kp_more_size(&entry->more);
}

kpack_error_t kp_entry_list_check(const struct kp_entry_list *l, struct kp_span key,
				  struct kp_span arch,
				  const struct kp_writer_entry *entry,
				  struct kpackx_error *why)
{
	struct kp_span type = entry->type;
	size_t strings = l->strings.n + !kp_string_known(&l->strings, arch) +
			 (!kp_string_known(&l->strings, type) && !kp_span_eq(arch, type));

	if (l->slots.size && *find_slot(l, hash_name(key, arch), key, arch))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "was added before");
	if (strings > KP_STRINGS_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "more than %d architectures and types", KP_STRINGS_MAX);
	return KPACK_SUCCESS;
}

kpack_error_t kp_entry_list_add(struct kp_entry_list *l, struct kp_span key,
				struct kp_span arch, const struct kp_writer_entry *from,
				struct kpackx_error *why)
{
	size_t more = kp_more_size(&from->more);
	struct kp_listed e = {
		.metadata_size = from->metadata.size,
		.more_size = more,
		.n_more = kp_more_count(&from->more),
		.size = from->size,
		.ordinal = from->ordinal,
		.hash = hash_name(key, arch),
	};
	struct kp_listed *there;
	uint8_t *metadata;
	uint32_t *slot;

	KP_TRY(kp_room(&l->items, l->n, &l->cap, "entries", why));
	if (!kp_slots_grow(&l->slots, hash_item, l))
		return kp_fail_memory(why, l->n * sizeof(*l->items), "entries");
	KP_TRY(intern_text(l, &l->arch_chain, arch, &e.arch, why));
	KP_TRY(intern_text(l, &l->type_chain, from->type, &e.type, why));
	slot = find_slot(l, e.hash, key, arch);
	there = *slot ? &l->items[*slot - 1] : NULL;
	if (there && there->ordinal != e.ordinal)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "entry %.150s %.40s: added twice with different bytes",
			       there->key, there->arch);
	e.key = malloc(key.size + 1 + from->metadata.size + more);
	if (!e.key)
		return kp_fail_memory(why, key.size + from->metadata.size + more,
				      "an entry");
	memcpy(e.key, key.data, key.size);
	e.key[key.size] = 0;
	metadata = (uint8_t *)e.key + key.size + 1;
	if (from->metadata.size)
		memcpy(metadata, from->metadata.data, from->metadata.size);
	e.metadata = metadata;
	e.more = metadata + from->metadata.size;
	kp_more_copy(&from->more, metadata + from->metadata.size);
	l->bytes += kp_entry_list_bytes(key, arch, from);
	if (there) {
		free(there->key);
		*there = e;
		return KPACK_SUCCESS;
	}
	kp_slots_put(&l->slots, slot, (uint32_t)l->n);
	l->items[l->n++] = e;
	return KPACK_SUCCESS;
}

/* --- the whole list ----------------------------------------------------------------- */

void kp_entry_list_sort(struct kp_entry_list *l)
{
	if (l->n)
		kp_sort(l->items, l->n, KP_BY_TEXT(struct kp_listed, key),
			KP_BY_TEXT(struct kp_listed, arch));
}

kpack_error_t kp_entry_list_arches(const struct kp_entry_list *l, const char ***out,
				   size_t *count, struct kpackx_error *why)
{
	const char **arches;
	size_t n = 0;

	KP_TRY(kp_new(&arches, l->n, "architectures", why));
	for (size_t i = 0; i < l->n; i++)
		arches[i] = l->items[i].arch;
	kp_sort(arches, l->n, KP_AS_TEXT);
	for (size_t i = 0; i < l->n; i++)
		if (n == 0 || strcmp(arches[n - 1], arches[i]) != 0)
			arches[n++] = arches[i];
	*out = arches;
	*count = n;
	return KPACK_SUCCESS;
}

void kp_entry_list_fini(struct kp_entry_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->items[i].key);
	for (size_t i = 0; i < l->strings.n; i++)
		free((void *)l->strings.texts[i].data);
	kp_string_table_fini(&l->strings);
	free(l->items);
	free(l->slots.slots);
	*l = (struct kp_entry_list){0};
}
