/* SPDX-License-Identifier: MIT */
/* The files of a directory that are no archives, as programs see them. */
#ifndef PACKER_FILES_PLAIN_FILES_H
#define PACKER_FILES_PLAIN_FILES_H

#include "file_tree.h"

struct plain_files {
	struct file_tree files; /* regular ones, and symbolic links to such */
	struct file_tree links; /* symbolic ones that lead to nothing on the disk */
	size_t n_faults;        /* directories that cannot be read; each was reported */
};

/*
 * Walk ROOT, which may be a mount: without the archives at its top and in .kpack, and, of
 * a mount, without toc.  PREFIX (may be "") and a slash stand before each path.  Neither tree is sorted.  OUT begins as zeros and must be
 * finished in any case.  IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t plain_files_read(const char *root, const char *prefix,
			       struct plain_files *out, struct kpackx_error *why);
void plain_files_fini(struct plain_files *plain);

#endif
