/* SPDX-License-Identifier: MIT */
/* The XXH3-128 of bytes, wherever they are, to know whether they are the same. */
#ifndef PACKER_ARCHIVES_CONTENT_HASH_H
#define PACKER_ARCHIVES_CONTENT_HASH_H

#include "core/archive/archive.h"

struct content_hash {
	uint8_t bytes[16]; /* canonical, as in metadata.xxh3 */
};

bool content_hash_eq(const struct content_hash *a, const struct content_hash *b);

/*
 * The hash of SIZE bytes at OFFSET of the file DISK. IO_ERROR, also when the file is
 * shorter.
 */
kpack_error_t content_hash_file(const char *disk, uint64_t offset, uint64_t size,
				struct content_hash *out, struct kpackx_error *why);

/*
 * The hash of an entry: from its metadata, which is believed; else the entry is decoded.
 */
kpack_error_t content_hash_entry(const struct kpack_archive *a, size_t entry,
				 struct content_hash *out, struct kpackx_error *why);

#endif
