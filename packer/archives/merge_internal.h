/* SPDX-License-Identifier: MIT */
/* Definitions that the files of the merge code share. */
#ifndef PACKER_MERGE_INTERNAL_H
#define PACKER_MERGE_INTERNAL_H

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
	uint32_t item;     /* its first item that is not dropped */
	uint32_t position; /* in the order of writing, before equal objects are shared */
	uint32_t same;     /* the object that is stored for it; usually itself */
	uint32_t written;  /* ordinal in the new archive */
};

struct merge_plan {
	const struct merge_source *sources;
	size_t n_sources;
	struct merge_options options;
	kpack_compression_t scheme;
	bool encodes; /* everything is decoded and stored anew */
	char *group;  /* owned */

	struct merge_item *items;
	size_t n_items, items_cap;
	size_t *first_item, *first_object; /* per source, and one after the last */

	struct merge_object *objects;
	size_t n_objects, objects_cap;
	uint32_t *order; /* the objects that are stored, in the order of writing */
	size_t n_order;

	/* unknown map fields of the new table of contents, and the source of each */
	struct kp_span *more;
	size_t *more_sources;
	size_t n_more, more_cap, more_sources_cap;

	size_t clashes;
	struct merge_stats stats;
};

/* Returns the path of a source, for messages. */
const char *merge_source_name(const struct merge_plan *p, size_t source);
/*
 * Copying from a source into the new archive failed with ERR: put the source's path in front
 * of the message, unless there is no room for the new archive.
 */
kpack_error_t merge_copy_fail(const struct merge_plan *p, size_t source,
			      kpack_error_t err, struct kpackx_error *why);

/* Get the entry of ITEM, and its metadata unless META is NULL. */
void merge_item_entry(const struct merge_plan *p, const struct merge_item *item,
		      struct kp_entry_info *info, struct kp_meta *meta);

/* Returns the unknown map fields of ITEM's entry. */
struct kp_more merge_item_more(const struct merge_plan *p, const struct merge_item *item);

/* Join the unknown map fields at the top of the sources' tables of contents. */
kpack_error_t merge_more(struct merge_plan *p, struct kpackx_error *why);

/* Make the items and objects of all sources. */
kpack_error_t merge_gather(struct merge_plan *p, struct kpackx_error *why);

/* Drop all but one of the items that have the same name. */
kpack_error_t merge_names(struct merge_plan *p, struct kpackx_error *why);

/* Set *SAME to whether two items have the same bytes. */
kpack_error_t merge_same_bytes(const struct merge_plan *p, const struct merge_item *x,
			       const struct merge_item *y, bool *same,
			       struct kpackx_error *why);

/* Decide which objects are stored, and in which order. */
void merge_order(struct merge_plan *p);

/* Let one object stand for all that are stored with equal bytes. */
kpack_error_t merge_share(struct merge_plan *p, struct kpackx_error *why);

/* Decode all objects, and store each content once in W. */
kpack_error_t merge_encode(struct merge_plan *p, struct kp_writer *w,
			   struct kpackx_error *why);

/*
 * The metadata map of ITEM's entry as the new archive has it, borrowed from its source or from
 * *OWNED, which the caller frees: without `chunk` if the object is stored in one piece.
 */
struct kp_span merge_item_metadata(const struct merge_plan *p,
				   const struct merge_item *item, uint8_t **owned);

/* Report progress: BYTES more. */
void merge_progress(const struct merge_plan *p, uint64_t bytes);

#endif
