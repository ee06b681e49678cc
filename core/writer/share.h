/* SPDX-License-Identifier: MIT */
/*
 * The objects of a shared archive (core/archive/shared.h) while it is written: content that
 * an earlier object has is found, and stored once.  One thread at a time.
 *
 * Where the hash of the last 64 bytes has a certain value, on average every 512 bytes, the
 * bytes before that place are looked up among the unique bytes so far; what is equal around
 * them becomes an extent, if it is long enough to be worth it.
 */
#ifndef KP_CORE_WRITER_SHARE_H
#define KP_CORE_WRITER_SHARE_H

#include "core/base/errors.h"
#include "core/base/span.h"
#include "unique.h"

struct kp_share;

/* Begin, with a temporary file in the directory open at DIR.  IO_ERROR; OUT_OF_MEMORY. */
kpack_error_t kp_share_new(int dir, struct kp_share **out, struct kpackx_error *why);
void kp_share_free(struct kp_share *s); /* NULL is allowed */

/* Add an object of DATA; objects are numbered from 0.  After a failure only free. */
kpack_error_t kp_share_add(struct kp_share *s, struct kp_span data,
			   struct kpackx_error *why);

/*
 * Append DATA to the unique bytes, for objects that kp_share_add_extents adds.  SEARCHED:
 * so that objects that kp_share_add adds find it, too.
 */
kpack_error_t kp_share_append(struct kp_share *s, struct kp_span data, bool searched,
			      struct kpackx_error *why);

/* Unique bytes of an object. */
struct kp_share_extent {
	uint64_t pos, size;
};
/* Add an object of these N extents, which a reader may reach (kp_reach_add). */
kpack_error_t kp_share_add_extents(struct kp_share *s,
				   const struct kp_share_extent *extents, size_t n,
				   struct kpackx_error *why);

/* Read an object of SIZE bytes into BUF. */
kpack_error_t kp_share_read(const struct kp_share *s, uint32_t object, uint8_t *buf,
			    struct kpackx_error *why);

/* The bytes of all objects, and those that are unique. */
uint64_t kp_share_size(const struct kp_share *s);
uint64_t kp_share_unique_size(const struct kp_share *s);
/* An upper bound of the bytes that kp_share_objects gives. */
uint64_t kp_share_objects_bound(const struct kp_share *s);

/* Write all unique bytes to the file, from which *OUT is borrowed. */
kpack_error_t kp_share_flush(struct kp_share *s, const struct kp_unique **out,
			     struct kpackx_error *why);
/* The table of objects, as the archive has it.  The caller frees *OUT. */
kpack_error_t kp_share_objects(const struct kp_share *s, uint8_t **out, size_t *size,
			       struct kpackx_error *why);

/* Bytes of a block. */
#define KP_SHARE_BLOCK (UINT64_C(1) << 20)

#endif
