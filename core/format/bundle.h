/* SPDX-License-Identifier: MIT */
/*
 * The header of a plain offload bundle, for the two places where one occurs: a bundle in
 * a file, and the decoded payload of a compressed bundle.
 */
#ifndef KP_CORE_FORMAT_LLVM_BUNDLE_H
#define KP_CORE_FORMAT_LLVM_BUNDLE_H

#include "format.h"

#define KP_BUNDLE_HEADER_MIN 32
/* A row of the header: u64 offset, size, length of the ID; the ID follows. */
#define KP_BUNDLE_ROW_SIZE 24

/*
 * Read bytes [HAVE, WANT) of the bundle to BUF + HAVE.  WANT grows with each call and is
 * at most the size given to kp_bundle_list.
 */
typedef kpack_error_t kp_bundle_more_fn(void *arg, uint8_t *buf, size_t have, size_t want,
					struct kpackx_error *why);

/*
 * List the entries of a bundle of which SIZE bytes exist; MORE fetches its header and
 * little more.  *END becomes the end of the last entry, or of the header if that is
 * later.
 * INVALID_FORMAT: counts, lengths or ranges do not fit into SIZE bytes.
 */
kpack_error_t kp_bundle_list(kp_bundle_more_fn *more, void *arg, uint64_t size,
			     struct kp_container *c, struct kp_containers *list,
			     uint64_t *end, struct kpackx_error *why);

bool kp_bundle_probe(struct kp_span head);

/* A row of a header to write. */
struct kp_bundle_row {
	struct kp_span id;
	uint64_t offset,
		size; /* the offset is written as given, also for an empty entry */
};

/*
 * Place the objects of N rows, in their order and behind the header: each at the first
 * multiple of ALIGN that is GAP bytes or more behind all before it.  An empty one takes no
 * room.  *SIZE becomes the end of the last.  false: no file can be that long.
 */
bool kp_bundle_place(struct kp_bundle_row *rows, size_t n, uint64_t align, uint64_t gap,
		     uint64_t *size);

/* Write the header of N rows to OUT, which has room for kp_bundle_header_size bytes. */
uint64_t kp_bundle_header_size(const struct kp_bundle_row *rows, size_t n);
void kp_bundle_header_write(const struct kp_bundle_row *rows, size_t n, uint8_t *out);

/*
 * The largest power of two, up to a page, that divides all offsets; OFFSETS has the bits
 * of all of them.  Containers and code objects need at most the alignment of a page.
 */
static inline uint64_t kp_bundle_alignment(uint64_t offsets)
{
	offsets |= 4096;
	return offsets & -offsets;
}

/*
 * Move the N rows that are left of a bundle together behind their header: their offsets
 * change, their order and alignment do not.  Rows with common bytes move as one.  *SIZE
 * becomes the size of the bundle.  Only error: OUT_OF_MEMORY.
 */
kpack_error_t kp_bundle_move_together(struct kp_bundle_row *rows, size_t n,
				      uint64_t *size, struct kpackx_error *why);

#endif
