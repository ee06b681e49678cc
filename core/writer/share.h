/* SPDX-License-Identifier: MIT */
/*
 * The objects of a shared archive (core/archive/shared.h) while it is written: content that
 * an earlier object has is found, and stored once.  One thread at a time.
 */
#ifndef KP_CORE_WRITER_SHARE_H
#define KP_CORE_WRITER_SHARE_H

#include "core/base/file.h"

/* Bytes of a block. */
#define KP_SHARE_BLOCK (UINT64_C(1) << 20)

/* The run of unique bytes, in a file without a name beside the archive. */
struct kp_unique {
	struct kp_outfile file;
	uint64_t size;
	uint8_t *tail; /* bytes from TAIL_AT on, which are not yet written */
	uint64_t tail_at;
};

/* A part of an object. */
struct kp_share_extent {
	uint64_t pos, size; /* of the unique bytes */
	bool is_new;        /* they are of no extent before it */
};

/* To be read only. */
struct kp_share {
	struct kp_unique unique;
	uint64_t size;   /* of all objects */
	size_t *objects; /* where each begins among the extents; then their number */
	uint32_t n_objects;
	struct kp_share_extent *extents;
	size_t n_extents;
	size_t objects_cap, extents_cap;
	struct share_finder *finder; /* of content that was seen before */
};

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
/* Add an object of these N extents, which a reader may reach (kp_reach_add). */
kpack_error_t kp_share_add_extents(struct kp_share *s,
				   const struct kp_share_extent *extents, size_t n,
				   struct kpackx_error *why);

/* Read an object into BUF. */
kpack_error_t kp_share_read(const struct kp_share *s, uint32_t object, uint8_t *buf,
			    struct kpackx_error *why);

/* Write all unique bytes to the file. */
kpack_error_t kp_share_flush(struct kp_share *s, struct kpackx_error *why);
/* Read SIZE bytes at POS, which the run has.  After kp_share_flush thread-safe. */
kpack_error_t kp_unique_read(const struct kp_unique *u, uint64_t pos, uint8_t *buf,
			     size_t size, struct kpackx_error *why);

/* The table of objects, as the archive has it; the caller frees *OUT.  And at most its bytes. */
kpack_error_t kp_share_objects(const struct kp_share *s, uint8_t **out, size_t *size,
			       struct kpackx_error *why);
uint64_t kp_share_objects_bound(const struct kp_share *s);

/*
 * A rolling hash: of its 64 bits, bit k depends on the last k + 1 bytes.  Where it has a
 * chosen value is decided by the content alone.  The table is filled by kp_share_new.
 */
extern uint64_t kp_rolling_table[256];

static inline uint64_t kp_rolling_add(uint64_t hash, uint8_t byte)
{
	return (hash << 1) + kp_rolling_table[byte];
}

#endif
