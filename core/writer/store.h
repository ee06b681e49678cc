/* SPDX-License-Identifier: MIT */
/*
 * Storing every content of one archive once.  Equal hashes only find candidates: the
 * bytes are compared before they are shared.  One thread at a time, except
 * kp_store_equals.
 */
#ifndef KP_CORE_WRITER_STORE_H
#define KP_CORE_WRITER_STORE_H

#include "core/base/errors.h"
#include "core/base/hash.h"
#include "core/base/slots.h"
#include "core/base/span.h"
#include "writer.h"

/* The key: objects with equal keys may share their stored bytes. */
struct kp_content {
	uint8_t hash[16]; /* XXH3-128 of the decoded bytes */
	uint64_t size;
	uint64_t chunk; /* frame layout */
};

struct kp_store {
	struct kp_writer *writer; /* the archive; closed with the store */
	kpack_compression_t scheme;
	struct kp_content_row {
		struct kp_content content;
		uint32_t ordinal;
	} * rows; /* the contents of its frames */
	size_t n, cap;
	struct kp_slots slots; /* of the rows */
};

/* Memory for comparing contents, which grows as needed and is reused. */
struct kp_scratch {
	uint8_t *stored, *decoded;
	size_t stored_cap, decoded_cap;
};
void kp_scratch_fini(struct kp_scratch *s);

/* The content key of DATA, stored in chunks of CHUNK bytes (0: in one piece). */
struct kp_content kp_content_of(struct kp_span data, uint64_t chunk);

/* The content key of SIZE bytes whose hash is HASH. */
struct kp_content kp_content_make(const struct kp_hash *hash, uint64_t size,
				  uint64_t chunk);

/* Free S; an unpublished archive leaves no file.  S may be zeroed. */
void kp_store_fini(struct kp_store *s);

/*
 * Find the ordinal of a candidate with the hash, size and chunks of CONTENT; false: none.
 */
bool kp_store_find(const struct kp_store *s, const struct kp_content *content,
		   uint32_t *ordinal);

/* Read the stored bytes of an ordinal into SCRATCH, from which *OUT borrows. */
kpack_error_t kp_store_read(struct kp_store *s, uint32_t ordinal,
			    struct kp_scratch *scratch, struct kp_span *out,
			    struct kpackx_error *why);

/* Set *EQUAL to whether the STORED bytes decode to DATA.  Thread-safe. */
kpack_error_t kp_store_equals(kpack_compression_t scheme, struct kp_span stored,
			      struct kp_span data, struct kp_scratch *scratch,
			      bool *equal, struct kpackx_error *why);

/*
 * As kp_store_equals for zstd-per-kernel, with no more than pieces of either in memory.
 * Thread-safe.
 */
kpack_error_t kp_store_decodes_to(const struct kp_source *stored,
				  const struct kp_source *data, bool *equal,
				  struct kpackx_error *why);

/*
 * Store the encoded bytes of CONTENT, unless the same bytes are already stored (*SHARED).
 * *ORDINAL is their ordinal.  Errors of kp_writer_add_stored.
 */
kpack_error_t kp_store_add(struct kp_store *s, const struct kp_content *content,
			   struct kp_span stored, uint32_t *ordinal, bool *shared,
			   struct kpackx_error *why);
/* As kp_store_add, from a file.  Not for a shared archive. */
kpack_error_t kp_store_add_file(struct kp_store *s, const struct kp_content *content,
				const struct kp_source *stored, uint32_t *ordinal,
				bool *shared, struct kpackx_error *why);

#endif
