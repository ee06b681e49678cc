/* SPDX-License-Identifier: MIT */
/*
 * One archive being written, in which every content is stored once.
 * One thread at a time, except volume_equals.
 */
#ifndef VOLUME_H
#define VOLUME_H

#include "content_table.h"
#include "error.h"
#include "span.h"
#include "writer.h"

/* An object on its way into an archive. */
struct archive_object {
	const char *arch;      /* canonical */
	uint8_t hash[16];      /* XXH3-128 of the decoded bytes, canonical */
	uint64_t size;         /* decoded bytes */
	uint64_t chunk;        /* 0: one frame */
	struct kp_span stored; /* data NULL: found stored already (archive_set_shared) */
	uint32_t ordinal;      /* then: where, in that volume */
	unsigned volume;
};

/* Memory for comparing objects, grown as needed and kept from one to the next. */
struct archive_scratch {
	uint8_t *stored, *decoded;
	size_t stored_cap, decoded_cap;
};
void archive_scratch_fini(struct archive_scratch *s);

struct volume {
	unsigned number;
	char *file; /* name in the directory */
	kpack_compression_t scheme;
	struct kp_writer *writer;
	struct content_table contents; /* what its frames hold */
};

/* "GROUP[.NUMBER]STEM.kpack" on the heap, or NULL; volume 1 has no number. */
char *volume_file_name(const char *group, unsigned number, const char *stem);

/* Free it; unpublished, it leaves nothing.  Accepts a half-made one. */
void volume_fini(struct volume *v);

/* Ordinal of an object with the hash, size and layout of O. */
bool volume_find(const struct volume *v, const struct archive_object *o,
		 uint32_t *ordinal);

/* The stored bytes of an ordinal, into the scratch. */
kpack_error_t volume_read_stored(struct volume *v, uint32_t ordinal,
				 struct archive_scratch *scratch, struct kp_span *out,
				 struct kpackx_error *why);

/* Do STORED bytes decode to DATA?  Thread-safe. */
kpack_error_t volume_equals(kpack_compression_t scheme, struct kp_span stored,
			    struct kp_span data, struct archive_scratch *scratch,
			    bool *equal, struct kpackx_error *why);

/* Store O's bytes unless the same are there; its ordinal is set. */
kpack_error_t volume_store(struct volume *v, struct archive_object *o, bool *shared,
			   struct kpackx_error *why);

#endif
