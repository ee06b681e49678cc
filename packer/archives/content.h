/* SPDX-License-Identifier: MIT */
/*
 * The bytes of entries: decode them, hash them, compare them, and find out whether they are what
 * the archive says.
 */
#ifndef PACKER_ARCHIVES_CONTENT_H
#define PACKER_ARCHIVES_CONTENT_H

#include "core/archive/archive.h"
#include "core/base/hash.h"
#include "core/base/sink.h"

/*
 * Pass the decoded bytes of an entry to SINK, in pieces.  They are checked against the
 * xxh3 if the entry has one.  SINK gets bytes before the whole was checked, unless the entry
 * is small.  To stop, SINK fills WHY and returns an error.
 */
kpack_error_t archive_decode(const struct kpack_archive *a, size_t entry,
			     struct kp_sink *sink, struct kpackx_error *why);

/* Decode all of an entry.  The caller frees *OWNED, which has its bytes, even after an error. */
kpack_error_t content_load(const struct kpack_archive *a, size_t entry, uint8_t **owned,
			   struct kp_span *out, struct kpackx_error *why);

/* The XXH3-128 of SOURCE. */
kpack_error_t content_hash_source(const struct kp_source *source, struct kp_hash *out,
				  struct kpackx_error *why);
/* The XXH3-128 of SIZE bytes at OFFSET of the file DISK.  IO_ERROR, also if it is shorter. */
kpack_error_t content_hash_file(const char *disk, uint64_t offset, uint64_t size,
				struct kp_hash *out, struct kpackx_error *why);
/* The hash of an entry's bytes, decoded; and as its metadata have it, which are trusted, if they
 * do. */
kpack_error_t content_hash_decoded(const struct kpack_archive *a, size_t entry,
				   struct kp_hash *out, struct kpackx_error *why);
kpack_error_t content_hash_entry(const struct kpack_archive *a, size_t entry,
				 struct kp_hash *out, struct kpackx_error *why);

/*
 * Whether two entries have the same bytes, by their sizes and hashes.  Errors name the
 * archive.
 */
kpack_error_t content_hash_same(const struct kpack_archive *a, size_t i,
				const struct kpack_archive *b, size_t k, bool *same,
				struct kpackx_error *why);

/* As content_hash_same, for entries of one size, by their decoded bytes. */
kpack_error_t content_compare(const struct kpack_archive *a, size_t i,
			      const struct kpack_archive *b, size_t k, bool *same,
			      struct kpackx_error *why);

enum check_what {
	/* an entry decodes to its size and its hash, or its stored bytes match their hashes */
	CHECK_BYTES,
	CHECK_TYPES, /* and code is what its type says */
};

/*
 * Decode entries of A, and report each that is damaged, with its archive, in order of
 * entries: what copies stored bytes asks first, so that damage does not spread to archives
 * that look new.  ENTRIES says which to look at (NULL: all), and afterwards which are damaged.
 * JOBS threads do it; 0: one for each processor.  Returns whether all is right.
 */
bool check_content(const struct kpack_archive *a, bool *entries, enum check_what what,
		   uint64_t jobs);

#endif
