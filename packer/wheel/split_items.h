/* SPDX-License-Identifier: MIT */
/*
 * The members of the output wheels, except for generated ones such as METADATA and
 * RECORD.
 */
#ifndef PACKER_WHEEL_SPLIT_ITEMS_H
#define PACKER_WHEEL_SPLIT_ITEMS_H

#include "device_wheels.h"
#include "split_source.h"

enum wheel_item_kind {
	WHEEL_ITEM_MEMBER,  /* of a source, unchanged */
	WHEEL_ITEM_BINARY,  /* of a source, converted */
	WHEEL_ITEM_ARCHIVE, /* with device code */
};

struct wheel_item {
	enum wheel_item_kind kind;
	char *path; /* in the output wheel */
	struct wheel_source *source;
	size_t member; /* its index in SOURCE; unused for an archive */
	char *disk;    /* file with the bytes; NULL: they are in the source */
	unsigned mode;
	bool database;
	bool last; /* in .dist-info, which wheels have at the end */
	const struct device_wheel *device; /* the output wheel; NULL: the host wheel */
};

struct wheel_items {
	struct wheel_item *items;
	size_t count, cap;
};

/*
 * Add the members of SOURCE, which has been packed, and its archives; add the device
 * wheels that they need to PARTS.  Leaves out RECORD, its signatures and METADATA, and
 * files whose bytes are now in archives only.
 */
kpack_error_t wheel_items_add(struct wheel_items *list, struct wheel_source *source,
			      struct device_wheels *devices, struct kpackx_error *why);
/* Sort them as wheels have them; equal paths in the order of their sources. */
void wheel_items_sort(struct wheel_items *list);
void wheel_items_fini(struct wheel_items *list);

/*
 * True if PATH is regenerated for the host wheel or dropped: METADATA, RECORD and its
 * signatures.
 */
bool wheel_items_made(const struct dist_info *info, const char *path);

#endif
