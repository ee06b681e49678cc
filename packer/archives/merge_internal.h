/* SPDX-License-Identifier: MIT */
/* The plan of a merge, as merge.c makes it and merge_write.c carries it out. */
#ifndef PACKER_ARCHIVES_MERGE_INTERNAL_H
#define PACKER_ARCHIVES_MERGE_INTERNAL_H

#include "core/base/file.h"
#include "merge.h"

#define MERGE_NONE UINT32_MAX

/* An entry that is taken from a source.  Sorted by source, ordinal, entry. */
struct merge_item {
	uint32_t source, entry;
	uint32_t object;
	bool dropped; /* the entry of another source stands for it */
};

/* A stored object that items name.  Sorted by source, ordinal. */
struct merge_object {
	/* of a shared archive only its size, and that is the object's part; fd -1 */
	struct kp_source stored;
	uint64_t size; /* decoded, as its first item says */
	uint64_t chunk;
	uint8_t hash[16]; /* metadata.xxh3 where an item has one */
	bool hashed;
	uint32_t source, ordinal;
	uint32_t
		item; /* its first item that is not dropped; MERGE_NONE: it is not stored */
	uint32_t position; /* in the order of writing, before equal objects are shared */
	uint32_t same;     /* the object that is stored for it; usually itself */
	uint32_t written;  /* ordinal in the new archive */
};

/* A map field that is not known: a name and a value, as they are stored. */
struct merge_field {
	struct kp_span pair, name, value;
	size_t source;
};

struct merge_plan {
	const struct merge_source *sources;
	size_t n_sources;
	struct merge_options options;
	kpack_compression_t scheme;
	bool encodes;         /* everything is decoded and stored anew */
	char *group, *family; /* owned; NULL: the writer's default */

	struct merge_item *items;
	size_t n_items, items_cap;
	size_t *first_item; /* per source, and one after the last */

	struct merge_object *objects;
	size_t n_objects, objects_cap;
	uint32_t *order; /* the objects that are stored, in the order of writing */
	size_t n_order;

	struct merge_field *fields; /* unknown ones of the new table of contents */
	size_t n_fields, fields_cap;

	size_t clashes;
	struct merge_stats stats;
};

/* Returns the path of a source, for messages. */
const char *merge_source_name(const struct merge_plan *p, size_t source);
/* Get the entry of ITEM, and its metadata unless META is NULL. */
void merge_item_entry(const struct merge_plan *p, const struct merge_item *item,
		      struct kp_entry_info *info, struct kp_meta *meta);
/* Returns the metadata map of ITEM's entry, as it is stored, and its unknown map fields. */
struct kp_span merge_item_map(const struct merge_plan *p, const struct merge_item *item);
struct kp_more merge_item_more(const struct merge_plan *p, const struct merge_item *item);

/* Let the first of all objects that are stored with equal bytes stand for them. */
kpack_error_t merge_share(struct merge_plan *p, struct kpackx_error *why);

#endif
