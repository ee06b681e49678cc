/* SPDX-License-Identifier: MIT */
/* Internals of a shared archive's bytes, shared by this folder's files. */
#ifndef KP_CORE_SHARED_INTERNAL_H
#define KP_CORE_SHARED_INTERNAL_H

#include "shared.h"

/* A part of an object, up to the next extent of the object or its end. */
struct kp_extent {
	uint64_t at;  /* offset in the object */
	uint64_t pos; /* where its bytes are in the run of unique bytes */
};

struct kp_shared_object {
	uint64_t size;
	uint64_t stored;
	size_t first; /* its extents are [first, next object's first) */
};

struct kp_shared {
	int fd;
	uint64_t block_size, unique_size, dictionary_size;
	uint32_t n_frames;
	uint64_t *offsets;                /* n_frames + 1, in the file */
	uint64_t *hashes;                 /* of stored frames; NULL: none */
	struct kp_shared_object *objects; /* a sentinel follows the last */
	uint32_t n_objects;
	struct kp_extent *extents;
	size_t n_extents;
};

/* Decoded bytes of a frame. */
static inline uint64_t kp_shared_frame_size(const struct kp_shared *s, uint32_t frame)
{
	uint64_t block = frame - kp_shared_first_block(s), left;

	if (frame < kp_shared_first_block(s))
		return s->dictionary_size;
	left = s->unique_size - block * s->block_size;
	return left < s->block_size ? left : s->block_size;
}

/* Fill in S from the bytes of its objects; S has its frames.  Errors of kp_shared_open. */
kpack_error_t kp_shared_parse_objects(struct kp_shared *s, struct kp_span bytes,
				      struct kpackx_error *why);

#endif
