/* SPDX-License-Identifier: MIT */
/*
 * The entries of an archive being written: found by name while entries are added, sorted
 * at the end.  Everything is copied.
 */
#ifndef KP_CORE_WRITER_ENTRY_LIST_H
#define KP_CORE_WRITER_ENTRY_LIST_H

#include "core/archive/string_table.h"
#include "writer.h"

struct kp_listed {
	char *key;               /* key, NUL, metadata, more: one allocation */
	const char *arch, *type; /* borrowed from `strings` */
	const uint8_t *metadata;
	size_t metadata_size;
	const uint8_t *more; /* unknown pairs */
	size_t more_size;
	uint64_t size;
	uint32_t ordinal;
	uint32_t n_more;
	uint32_t hash; /* of key and arch */
};

/* All zero is an empty list. */
struct kp_entry_list {
	struct kp_listed *items;
	size_t n, cap;
	struct kp_slots slots; /* of items by key and arch; not once sorted */
	uint64_t bytes;        /* most bytes of the entries in the table of contents */

	struct kp_string_table strings; /* architectures and types, owned */
	struct kp_string_chain arch_chain, type_chain;
};

/* Most bytes of one entry in the table of contents: names, numbers, MessagePack heads. */
uint64_t kp_entry_list_bytes(struct kp_span key, struct kp_span arch,
			     const struct kp_writer_entry *entry);

/*
 * Check that an entry can be added.  INVALID_ARGUMENT: its name exists, or the list would
 * have too many architectures and types.
 */
kpack_error_t kp_entry_list_check(const struct kp_entry_list *l, struct kp_span key,
				  struct kp_span arch,
				  const struct kp_writer_entry *entry,
				  struct kpackx_error *why);

/*
 * Add an entry, or replace an entry of the same name and ordinal.
 * INVALID_ARGUMENT: an entry of this name has another ordinal.  OUT_OF_MEMORY.
 */
kpack_error_t kp_entry_list_add(struct kp_entry_list *l, struct kp_span key,
				struct kp_span arch, const struct kp_writer_entry *entry,
				struct kpackx_error *why);

/* Sort bytewise by key, then arch.  Afterwards no entry can be added or checked. */
void kp_entry_list_sort(struct kp_entry_list *l);

/*
 * The distinct architectures of the entries, sorted.  The caller frees the array *OUT;
 * its strings are borrowed from the list.
 */
kpack_error_t kp_entry_list_arches(const struct kp_entry_list *l, const char ***out,
				   size_t *count, struct kpackx_error *why);

void kp_entry_list_fini(struct kp_entry_list *l);

#endif
