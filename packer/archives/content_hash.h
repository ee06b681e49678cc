/* SPDX-License-Identifier: MIT */
/* The XXH3-128 of a file's or an entry's bytes, to compare them. */
#ifndef PACKER_ARCHIVES_CONTENT_HASH_H
#define PACKER_ARCHIVES_CONTENT_HASH_H

#include "core/archive/archive.h"
#include "core/base/hash.h"

/* Hash SIZE bytes at OFFSET of the file DISK.  IO_ERROR, also if it is shorter. */
kpack_error_t content_hash_file(const char *disk, uint64_t offset, uint64_t size,
				struct kp_hash *out, struct kpackx_error *why);

/*
 * The hash of an entry: taken from its metadata, which is trusted; if it has none, the
 * entry is decoded.
 */
kpack_error_t content_hash_entry(const struct kpack_archive *a, size_t entry,
				 struct kp_hash *out, struct kpackx_error *why);

/*
 * Whether two entries have the same bytes, by their sizes and hashes.  Errors name the
 * archive.
 */
kpack_error_t content_hash_same(const struct kpack_archive *a, size_t i,
				const struct kpack_archive *b, size_t k, bool *same,
				struct kpackx_error *why);

#endif
