/* SPDX-License-Identifier: MIT */
/*
 * Packing an object of many bytes without holding it or its frame in memory: both are in
 * temporary files (core/base/file.h), whose pages are given back while they are mapped.
 */
#ifndef PACKER_PACK_LARGE_H
#define PACKER_PACK_LARGE_H

#include "core/base/hash.h"
#include "core/writer/encode.h"

/* About how much memory such an object needs, besides its encoder. */
#define LARGE_COST (UINT64_C(24) << 20)

struct large {
	struct kp_source raw;   /* the object's bytes */
	struct kp_source frame; /* encoded */
	int raw_fd, frame_fd;   /* owned; -1: none */
};

/* Whether objects of SIZE bytes are packed so. */
bool large_is(uint64_t size);

/*
 * Hash SOURCE, and copy it unless it is PRIVATE, a file that nobody else can change, which
 * is borrowed.  OUT is to be freed even after a failure.  IO_ERROR.
 */
kpack_error_t large_begin(const struct kp_source *source, bool private, struct large *out,
			  struct kp_hash *hash, struct kpackx_error *why);
/* Set the frame, which is that of kp_encode.  IO_ERROR; OUT_OF_MEMORY. */
kpack_error_t large_encode(struct large *l, struct kp_encoder *encoder,
			   struct kpackx_error *why);
/* Free the object's bytes, of which the frame is independent. */
void large_end_raw(struct large *l);
void large_fini(struct large *l);

#endif
