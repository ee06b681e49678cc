/* SPDX-License-Identifier: MIT */
/*
 * The entries of an archive being written.  They are looked up by name while they are added, in a
 * hash table, and sorted once at the end.  Each has one allocation for key, metadata and unknown
 * pairs; architectures and types, of which there are few, are kept once.
 *
 * An entry that is added again replaces the first one only if it has the same ordinal, that is,
 * the same bytes: two contents under one name would let the order of the input decide which of
 * them a loader gets.  BYTES is counted on the way, so that a writer learns before it adds an
 * entry that the table would pass what readers accept.
 */
#include <stdlib.h>
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "internal.h"

/* --- texts, and finding by name ------------------------------------------------------- */

/* Return the writer's own copy of TEXT; there are few distinct texts. */
static kpack_error_t intern_text(struct kp_writer *w, struct kp_string_chain *chain,
				 struct kp_span text, const char **out,
				 struct kpackx_error *why)
{
	struct kp_string_table *t = &w->entries.strings;
	size_t known = t->n; /* a new text has this number */
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

/* The slot of KEY and ARCH, or the free slot where they belong; there are slots. */
static uint32_t *find_slot(const struct kp_writer *w, uint32_t hash, struct kp_span key,
			   struct kp_span arch)
{
	uint32_t *slot = kp_slots_first(&w->entries.slots, hash);

	for (; *slot; slot = kp_slots_next(&w->entries.slots, slot)) {
		const struct kp_listed *e = &w->entries.items[*slot - 1];

		if (e->hash == hash && kp_span_is(key, e->key) &&
		    kp_span_is(arch, e->arch))
			break;
	}
	return slot;
}

static uint64_t hash_item(const void *arg, uint32_t item)
{
	return ((const struct kp_writer *)arg)->entries.items[item].hash;
}

/* --- adding ------------------------------------------------------------------------- */

uint64_t kp_writer_entry_bytes(struct kp_span key, struct kp_span arch,
			       const struct kp_writer_entry *entry)
{
	return 64 + key.size + 2 * arch.size + entry->type.size + entry->metadata.size +
	       kp_more_size(&entry->more);
}

kpack_error_t kp_writer_check_entry(const struct kp_writer *w, struct kp_span key,
				    struct kp_span arch,
				    const struct kp_writer_entry *entry,
				    struct kpackx_error *why)
{
	const struct kp_string_table *t = &w->entries.strings;
	struct kp_span type = entry->type;
	size_t strings = t->n + !kp_string_known(t, arch) +
			 (!kp_string_known(t, type) && !kp_span_eq(arch, type));
	/* besides the entries: a row of `blobs` for each frame, hashes, and the texts */
	uint64_t size = w->entries.bytes + 64 * ((uint64_t)w->n_frames + 1) +
			8 * (uint64_t)w->n_pieces +
			kp_writer_entry_bytes(key, arch, entry) + 4 * KP_NAME_MAX;

	if (w->share)
		size += kp_share_objects_bound(w->share);
	if (w->entries.slots.size && *find_slot(w, hash_name(key, arch), key, arch))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "was added before");
	if (strings > KP_STRINGS_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "more than %d architectures and types", KP_STRINGS_MAX);
	if (size > KP_TOC_SIZE_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "the table of contents would pass %llu bytes",
			       (unsigned long long)KP_TOC_SIZE_MAX);
	return KPACK_SUCCESS;
}

static bool is_name(struct kp_span s)
{
	return s.size && s.size <= KP_NAME_MAX && kp_text_ok(s);
}

kpack_error_t kp_writer_add_entry(struct kp_writer *w, struct kp_span key,
				  struct kp_span arch, const struct kp_writer_entry *from,
				  struct kpackx_error *why)
{
	size_t more = kp_more_size(&from->more), n = from->metadata.size;
	struct kp_listed e = {
		.n_more = kp_more_count(&from->more),
		.size = from->size,
		.ordinal = from->ordinal,
		.hash = hash_name(key, arch),
	};
	struct kp_listed *there;
	uint8_t *copy;
	uint32_t *slot;
	char text[160];

	if (!is_name(key) || !is_name(arch) || !is_name(from->type))
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "entry %s: key, architecture or type is not UTF-8 without "
			       "control bytes, or empty, or longer than %d bytes",
			       kp_text_escape(key, text, sizeof(text)), KP_NAME_MAX);
	if (from->ordinal >= w->n_frames)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "entry %s: ordinal %u of %u",
			       kp_text_escape(key, text, sizeof(text)), from->ordinal,
			       w->n_frames);
	KP_TRY(kp_room(&w->entries.items, w->entries.n, &w->entries.cap, "entries", why));
	if (!kp_slots_grow(&w->entries.slots, hash_item, w))
		return kp_fail_memory(why, w->entries.n * sizeof(e), "entries");
	KP_TRY(intern_text(w, &w->entries.arch_chain, arch, &e.arch, why));
	KP_TRY(intern_text(w, &w->entries.type_chain, from->type, &e.type, why));
	/* whether it was added before: then its ordinal decides */
	slot = find_slot(w, e.hash, key, arch);
	there = *slot ? &w->entries.items[*slot - 1] : NULL;
	if (there && there->ordinal != e.ordinal)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "entry %.150s %.40s: added twice with different bytes",
			       there->key, there->arch);
	e.key = malloc(key.size + 1 + n + more);
	if (!e.key)
		return kp_fail_memory(why, key.size + n + more, "an entry");
	memcpy(e.key, key.data, key.size);
	e.key[key.size] = 0;
	copy = (uint8_t *)e.key + key.size + 1;
	if (n)
		memcpy(copy, from->metadata.data, n);
	kp_more_copy(&from->more, copy + n);
	e.metadata = (struct kp_span){copy, n};
	e.more = (struct kp_span){copy + n, more};
	w->entries.bytes += kp_writer_entry_bytes(key, arch, from);
	if (there) {
		free(there->key);
		*there = e;
		return KPACK_SUCCESS;
	}
	kp_slots_put(&w->entries.slots, slot, (uint32_t)w->entries.n);
	w->entries.items[w->entries.n++] = e;
	return KPACK_SUCCESS;
}
