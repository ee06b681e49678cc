/* SPDX-License-Identifier: MIT */
/* The files of a directory that are not archives, as programs see them. */
#ifndef PACKER_FILES_PLAIN_FILES_H
#define PACKER_FILES_PLAIN_FILES_H

#include "file_tree.h"

struct plain_files {
	struct file_tree files; /* regular files, and symbolic links to them */
	struct file_tree links; /* symbolic links that lead to nothing on the disk */
	size_t n_faults;        /* directories that cannot be read; each was reported */
	char **archive_dirs; /* directories below the root, not .kpack, with archives */
	size_t n_archive_dirs, archive_dirs_cap;
};

/*
 * Walk ROOT, which may be a mount.  Skips the archives at its top and in .kpack, and in a
 * mount, toc.  Each path gets PREFIX and a slash before it, unless PREFIX is "".  The
 * trees are not sorted.  The caller passes OUT as zeros, and must finish it.
 */
void plain_files_read(const char *root, const char *prefix, struct plain_files *out);
void plain_files_fini(struct plain_files *plain);

#endif
