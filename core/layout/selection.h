/* SPDX-License-Identifier: MIT */
/* The containers of a file with device code, without some of its code objects. */
#ifndef KP_CORE_LAYOUT_SELECTION_H
#define KP_CORE_LAYOUT_SELECTION_H

#include "core/binary/fatbin.h"
#include "core/base/file.h"

/*
 * Write the containers of FAT (kind ELF or BARE) to OUT, from its beginning on, without
 * the images whose flag in GONE is set.  Plain and compressed bundles at the top are
 * written without them, in the form that they have; a bundle of which every object goes
 * keeps the host's entry.  All other containers, and bundles that keep all images, are
 * copied.  Containers keep their order and alignment, and move together.
 *
 * OFFSETS gets the offset of each of FAT's containers at the top, and *SIZE the number of
 * bytes.  OUT NULL: only count; compressed bundles are encoded for that.
 *
 * One image is in memory at a time, or the payload of one compressed bundle, twice.
 * IO_ERROR, OUT_OF_MEMORY; errors of decoding; NOT_IMPLEMENTED: a compressed bundle
 * cannot be encoded again; more than KP_LAYOUT_SECTION_MAX bytes, where bytes that images
 * share count for each.
 */
kpack_error_t kp_selection_write(const struct kp_fatbin *fat, const bool *gone,
				 struct kp_outfile *out, uint64_t *offsets,
				 uint64_t *size, struct kpackx_error *why);

/* Whether kp_selection_write can leave out images of container NUMBER of FAT. */
bool kp_selection_possible(const struct kp_fatbin *fat, size_t number);

#endif
