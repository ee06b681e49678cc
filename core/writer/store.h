/* SPDX-License-Identifier: MIT */
/*
 * Storing every content of one archive once.  Equal hashes only make candidates: the
 * bytes are compared before anything is shared.
 * One thread at a time, except kp_store_equals.
 */
#ifndef KP_CORE_WRITER_STORE_H
#define KP_CORE_WRITER_STORE_H

#include "content_table.h"
#include "core/base/errors.h"
#include "core/base/span.h"
#include "writer.h"

struct kp_store {
	struct kp_writer *writer; /* the archive; closed with the store */
	kpack_compression_t scheme;
	struct kp_content_table contents; /* what its frames hold */
};

/* Memory for comparing contents, grown as needed and kept from one to the next. */
struct kp_scratch {
	uint8_t *stored, *decoded;
	size_t stored_cap, decoded_cap;
};
void kp_scratch_fini(struct kp_scratch *s);

/* The content of DATA that is stored in chunks of CHUNK bytes (0: whole). */
struct kp_content kp_content_of(struct kp_span data, uint64_t chunk);

/* The same of data that comes in pieces. */
struct kp_content_hash;
struct kp_content_hash *kp_content_hash_new(void); /* NULL: out of memory */
void kp_content_hash_add(struct kp_content_hash *hash, struct kp_span data);
/* Frees HASH, of SIZE bytes in all. */
struct kp_content kp_content_hash_end(struct kp_content_hash *hash, uint64_t size,
				      uint64_t chunk);

/* Free it; unpublished, the archive leaves nothing.  Accepts a zeroed one. */
void kp_store_fini(struct kp_store *s);

/* Ordinal of a candidate: the hash, size and layout of CONTENT. */
bool kp_store_find(const struct kp_store *s, const struct kp_content *content,
		   uint32_t *ordinal);

/* The stored bytes of an ordinal, into the scratch. */
kpack_error_t kp_store_read(struct kp_store *s, uint32_t ordinal,
			    struct kp_scratch *scratch, struct kp_span *out,
			    struct kpackx_error *why);

/* Do STORED bytes decode to DATA?  Thread-safe. */
kpack_error_t kp_store_equals(kpack_compression_t scheme, struct kp_span stored,
			      struct kp_span data, struct kp_scratch *scratch,
			      bool *equal, struct kpackx_error *why);

/*
 * Store the encoded bytes of CONTENT unless the same are there.
 * Errors of kp_writer_add_stored.
 */
kpack_error_t kp_store_add(struct kp_store *s, const struct kp_content *content,
			   struct kp_span stored, uint32_t *ordinal, bool *shared,
			   struct kpackx_error *why);

#endif
