/* SPDX-License-Identifier: MIT */
/*
 * The entries of an archive that is being written: found by name while they come, in order
 * at the end.  Everything is copied.
 */
#ifndef KP_CORE_WRITER_ENTRY_LIST_H
#define KP_CORE_WRITER_ENTRY_LIST_H

#include "core/toc/string_table.h"
#include "writer.h"

struct kp_listed {
	char *key;               /* key, NUL, metadata, more: one allocation */
	const char *arch, *type; /* of the strings */
	const uint8_t *metadata;
	size_t metadata_size;
	const uint8_t *more; /* pairs that are not known */
	size_t more_size;
	uint64_t size;
	uint32_t ordinal;
	uint32_t n_more;
	uint32_t hash; /* of key and arch */
};

/* All zero is an empty one. */
struct kp_entry_list {
	struct kp_listed *items;
	size_t n, cap;
	uint32_t *
		slots; /* by hash of key and arch: item + 1; 0 is free.  Not after sorting */
	size_t n_slots;
	uint64_t bytes; /* most that the entries can take in the table of contents */

	struct kp_string_table strings; /* architectures and types, owned */
	struct kp_string_chain arch_chain, type_chain;
};

/* Most bytes of one entry in the table: names, numbers and MessagePack's heads. */
uint64_t kp_entry_list_bytes(struct kp_span key, struct kp_span arch,
			     const struct kp_writer_entry *entry);

/* INVALID_ARGUMENT: its name is there, or it would be one architecture or type too many. */
kpack_error_t kp_entry_list_check(const struct kp_entry_list *l, struct kp_span key,
				  struct kp_span arch,
				  const struct kp_writer_entry *entry,
				  struct kpackx_error *why);

/*
 * Add one, or replace the one of its name that has the same ordinal.
 * INVALID_ARGUMENT: that has another; OUT_OF_MEMORY.
 */
kpack_error_t kp_entry_list_add(struct kp_entry_list *l, struct kp_span key,
				struct kp_span arch, const struct kp_writer_entry *entry,
				struct kpackx_error *why);

/* Order by key, then arch, bytewise.  Nothing can be added or checked afterwards. */
void kp_entry_list_sort(struct kp_entry_list *l);

/* The architectures that are there, each once, sorted; the caller frees *OUT. */
kpack_error_t kp_entry_list_arches(const struct kp_entry_list *l, const char ***out,
				   size_t *count, struct kpackx_error *why);

void kp_entry_list_fini(struct kp_entry_list *l);

#endif
