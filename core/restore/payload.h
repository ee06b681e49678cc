/* SPDX-License-Identifier: MIT */
/* The rebuilt payload of a container: whole, or without missing images. */
#ifndef KP_CORE_LAYOUT_PAYLOAD_H
#define KP_CORE_LAYOUT_PAYLOAD_H

#include "layout_internal.h"

/* Where a payload is written: [0, room) of memory, or of a file from OFFSET on. */
struct kp_layout_sink {
	uint8_t *memory; /* NULL: the file */
	struct kp_outfile *file;
	uint64_t offset, room;
};

/* Write SIZE bytes of DATA at OFF.  INVALID_METADATA: they pass the room; IO_ERROR. */
kpack_error_t kp_layout_put(const struct kp_layout_sink *s, uint64_t off,
			    const void *data, size_t size, struct kpackx_error *why);
/* Write the header of a bundle of N ROWS.  As kp_layout_put; also OUT_OF_MEMORY. */
kpack_error_t kp_layout_put_header(const struct kp_layout_sink *s,
				   const struct kp_bundle_row *rows, size_t n,
				   struct kpackx_error *why);

struct kp_layout_payload {
	const struct kp_layout *layout;
	const struct kp_layout_container *container;
	const struct kp_layout_source *source;
	struct kp_bundle_row *rows; /* of the available images */
	size_t *images;             /* their numbers */
	size_t n_rows;
	uint64_t size;
	bool whole; /* no image is missing */
};

/*
 * Find the available images of container C, and their offsets.  P borrows LAYOUT and
 * SOURCE.  The only error is OUT_OF_MEMORY.
 */
kpack_error_t kp_layout_payload_init(struct kp_layout_payload *p,
				     const struct kp_layout *layout,
				     const struct kp_layout_source *source, size_t c,
				     struct kpackx_error *why);
void kp_layout_payload_fini(struct kp_layout_payload *p);

/*
 * Build the payload's p->size bytes on the heap; the caller frees *OUT.
 * INVALID_METADATA: an image is not the object that was packed; OUT_OF_MEMORY; errors of
 * READ.
 */
kpack_error_t kp_layout_payload_build(const struct kp_layout_payload *p, uint8_t **out,
				      struct kpackx_error *why);

/*
 * As kp_layout_payload_build, but write to a file at OFFSET, and skip zero bytes between
 * entries.  One image is in memory at a time.
 */
kpack_error_t kp_layout_payload_write(const struct kp_layout_payload *p,
				      struct kp_outfile *out, uint64_t offset,
				      struct kpackx_error *why);

#endif
