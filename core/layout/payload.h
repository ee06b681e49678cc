/* SPDX-License-Identifier: MIT */
/* A container's payload as it will be: whole, or without the images that are missing. */
#ifndef KP_CORE_LAYOUT_PAYLOAD_H
#define KP_CORE_LAYOUT_PAYLOAD_H

#include "internal.h"

struct kp_layout_payload {
	const struct kp_layout *layout;
	const struct kp_layout_container *container;
	const struct kp_layout_source *source;
	struct kp_bundle_row *rows; /* of the images that are there */
	size_t *images;             /* which ones */
	size_t n_rows;
	uint64_t size;
	bool whole; /* nothing is missing */
};

/*
 * See which images of container C there are and where they go.  Borrows all it is given.
 * Only fails with OUT_OF_MEMORY.
 */
kpack_error_t kp_layout_payload_init(struct kp_layout_payload *p,
				     const struct kp_layout *layout,
				     const struct kp_layout_source *source, size_t c,
				     struct kpackx_error *why);
void kp_layout_payload_fini(struct kp_layout_payload *p);

/*
 * Make its bytes, p->size of them, on the heap; the caller frees *OUT.
 * INVALID_METADATA: an image is another one; OUT_OF_MEMORY; what READ returns.
 */
kpack_error_t kp_layout_payload_build(const struct kp_layout_payload *p, uint8_t **out,
				      struct kpackx_error *why);

/*
 * The same to a file at OFFSET, but for what lies between; one image is in memory at a
 * time.
 */
kpack_error_t kp_layout_payload_write(const struct kp_layout_payload *p,
				      struct kp_outfile *out, uint64_t offset,
				      struct kpackx_error *why);

#endif
