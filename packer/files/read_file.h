/* SPDX-License-Identifier: MIT */
/* Read the bytes of a file of a tree; a .zlib file (RFC 1950) is unpacked. */
#ifndef PACKER_FILES_READ_FILE_H
#define PACKER_FILES_READ_FILE_H

#include "file_tree.h"

struct read_file {
	uint8_t *data;
	size_t size;
};

/*
 * Read a file; the caller must finish OUT if this succeeds.  INVALID_FORMAT: longer than
 * any library is; DECOMPRESSION_FAILED: not a whole zlib stream; IO_ERROR;
 * OUT_OF_MEMORY.
 */
kpack_error_t read_file_read(const struct file_tree *tree, size_t file,
			     struct read_file *out, struct kpackx_error *why);
/* As read_file_read, from SOURCE; ZLIB: unpack it. */
kpack_error_t read_file_unpack(const struct kp_source *source, bool zlib,
			       struct read_file *out, struct kpackx_error *why);
void read_file_fini(struct read_file *dat);

/* For tests: unpack PACKED. */
kpack_error_t read_file_inflate(struct kp_span packed, struct read_file *out,
				struct kpackx_error *why);

static inline struct kp_span read_file_span(const struct read_file *dat)
{
	return (struct kp_span){dat->data, dat->size};
}

#endif
