/* SPDX-License-Identifier: MIT */
/*
 * The regular files of an install tree by path, with their bytes on the disk, or in
 * archives, as the mount would show them.
 */
#ifndef PACKER_LIBRARY_FILE_TREE_H
#define PACKER_LIBRARY_FILE_TREE_H

#include <sys/types.h>
#include "core/archive/archive.h"
#include "core/base/file.h"

struct file_tree_item {
	char *path;                    /* relative to the root */
	char *disk;                    /* path to open; NULL: it is an entry */
	struct kpack_archive *archive; /* borrowed */
	size_t entry;
	uint64_t size;
	mode_t mode;
	size_t rank; /* in the order of adding */
};

/* Sorted bytewise by path; each path is unique. */
struct file_tree {
	struct file_tree_item *items;
	size_t count, cap;
};

/* A file's bytes, open for reading. */
struct file_bytes {
	struct kp_source source;
	int fd;        /* -1: an entry */
	uint8_t *heap; /* decoded bytes of an entry; or NULL */
};

/* Add a file; paths are copied. */
void file_tree_add(struct file_tree *t, const struct file_tree_item *item);
/* Sort the files after the last was added.  If paths are equal, the first added stays. */
void file_tree_sort(struct file_tree *t);
void file_tree_fini(struct file_tree *t);

/* Number of the first file whose path is not less than PATH. */
size_t file_tree_from(const struct file_tree *t, const char *path);
/* Find the number of the file PATH; false: no such file. */
bool file_tree_find(const struct file_tree *t, const char *path, size_t *file);

/* Open a file's bytes.  IO_ERROR, and the errors of decoding an entry. */
kpack_error_t file_tree_open(const struct file_tree *t, size_t file,
			     struct file_bytes *out, struct kpackx_error *why);
void file_bytes_close(struct file_bytes *bytes); /* zeros with fd -1 are fine */

/* --- whole files ------------------------------------------------------------------------- */

/* The bytes of a file; a .zlib file (RFC 1950) is unpacked. */
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

static inline struct kp_span read_file_span(const struct read_file *dat)
{
	return (struct kp_span){dat->data, dat->size};
}

#endif
