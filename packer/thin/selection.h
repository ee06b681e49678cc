/* SPDX-License-Identifier: MIT */
/*
 * The containers of a file with device code, smaller: without some of its code objects,
 * without their debugging information, compressed.
 */
#ifndef KP_PACKER_THIN_SELECTION_H
#define KP_PACKER_THIN_SELECTION_H

#include "core/base/file.h"
#include "core/host/host_fatbin.h"

struct kp_ccob_form;

struct kp_selection {
	const bool *gone; /* per image: it is left out */
	bool strip;       /* code objects lose their debugging information */
	const struct kp_ccob_form *compress; /* of plain bundles; NULL: they stay plain */
	/* Also of code objects at the top: each becomes a bundle with the host's entry. */
	bool wrap;
	/*
	 * For stripping: called with each object that loses something, before it is
	 * WRITTEN or only counted; may set *KEEP, so that it stays as it is.  NULL: none.
	 */
	kpack_error_t (*strips)(void *arg, const struct kp_source *object, bool written,
				bool *keep, struct kpackx_error *why);
	void *arg;
};

/*
 * Write the containers of FAT (kind HOST or BARE) to OUT, from its beginning on, without
 * the images whose flag in GONE is set.  Plain and compressed bundles at the top are
 * written without them, in the form that they have or, if that is smaller, compressed as
 * SELECTION says; a bundle of which every object goes keeps the host's entry.  All other
 * containers, and bundles of which nothing changes, are copied.  Containers keep their
 * order and alignment, and move together.
 *
 * Code objects are stripped as kp_strip_plan does it, if it can and they become smaller,
 * in bundles whose objects do not overlap, and where a container at the top is one.
 *
 * OFFSETS gets the offset of each of FAT's containers at the top, and *SIZE the number of
 * bytes.  OUT NULL: only count; compressed bundles are encoded for that.
 *
 * One image is in memory at a time, or the payload of one compressed bundle, twice.
 * IO_ERROR, OUT_OF_MEMORY; errors of decoding and of `strips`; NOT_IMPLEMENTED: a
 * compressed bundle cannot be encoded again; more than KP_LAYOUT_SECTION_MAX bytes, where
 * bytes that images share count for each.
 */
kpack_error_t kp_selection_write(const struct kp_fatbin *fat,
				 const struct kp_selection *selection,
				 struct kp_outfile *out, uint64_t *offsets,
				 uint64_t *size, struct kpackx_error *why);

/*
 * Whether kp_selection_write would change a container; compressed bundles are decoded to
 * find out, but nothing is encoded.  Errors as for kp_selection_write.
 */
kpack_error_t kp_selection_changes(const struct kp_fatbin *fat,
				   const struct kp_selection *selection, bool *changes,
				   struct kpackx_error *why);

/* Whether kp_selection_write can leave out images of container NUMBER of FAT. */
bool kp_selection_possible(const struct kp_fatbin *fat, size_t number);

#endif
