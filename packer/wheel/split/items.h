/* SPDX-License-Identifier: MIT */
/* What the wheels that are written will have, besides what is made for them anew. */
#ifndef PACKER_WHEEL_SPLIT_ITEMS_H
#define PACKER_WHEEL_SPLIT_ITEMS_H

#include "parts.h"
#include "source.h"

enum wheel_item_kind {
	WHEEL_ITEM_MEMBER,  /* of a source, as it is */
	WHEEL_ITEM_BINARY,  /* of a source, converted */
	WHEEL_ITEM_ARCHIVE, /* with device code */
};

struct wheel_item {
	enum wheel_item_kind kind;
	char *path; /* in the wheel */
	struct wheel_source *source;
	size_t member; /* of SOURCE; not of an archive */
	char *disk;    /* where the bytes are; NULL: in the source */
	unsigned mode;
	bool database;
	bool last; /* in the wheel's .dist-info, which stands at the end */
	const struct wheel_part *part; /* NULL: the host wheel */
};

struct wheel_items {
	struct wheel_item *items;
	size_t count, cap;
};

/*
 * Add what SOURCE, which was packed, has, in PARTS, which are made.  What is left out: RECORD,
 * its signatures and METADATA, and what only archives have now.
 */
kpack_error_t wheel_items_add(struct wheel_items *list, struct wheel_source *source,
			      struct wheel_parts *parts, struct kpackx_error *why);
/* In the order in which they stand in wheels; equal paths in order of their sources. */
void wheel_items_sort(struct wheel_items *list);
void wheel_items_fini(struct wheel_items *list);

/* Is it made anew for the host wheel, or dropped: RECORD, RECORD.jws, METADATA ...? */
bool wheel_items_made(const struct dist_info *info, const char *path);

/* The bytes of a member, or of the file. */
kpack_error_t wheel_item_size(const struct wheel_item *item, uint64_t *size,
			      struct kpackx_error *why);

#endif
