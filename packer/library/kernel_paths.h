/* SPDX-License-Identifier: MIT */
/*
 * A database of kernel paths: a table kernels(arch, length, precision, kernel_path), with
 * any further columns, that has a row for each code object next to the database.
 */
#ifndef PACKER_LIBRARY_ROCFFT_KERNEL_PATHS_H
#define PACKER_LIBRARY_ROCFFT_KERNEL_PATHS_H

#include "packer/files/file_tree.h"
#include "facts.h"
#include "sqlite_file.h"

/* Limit of rows in one database. */
#define KERNEL_PATHS_MAX (1 << 20)

struct kernel_path {
	uint64_t row; /* counted from 1 */
	/* As text, empty for NULL; valid as long as the row */
	struct kp_span arch, length, precision, path;
	bool exists;
	size_t file;         /* if it exists: its number in the tree */
	struct facts *facts; /* length, precision, factors, batch; USE may take them */
};

typedef void kernel_path_use(void *arg, struct kernel_path *path);

/* Whether such a table exists. */
kpack_error_t kernel_paths_are_there(struct sqlite_file *f, bool *are,
				     struct kpackx_error *why);

/*
 * Call USE for each row of the database FILE of TREE, in order; never, if it has no such
 * table.  Paths are resolved as kernel_path_find does.
 * INVALID_FORMAT: damaged; whatever USE returns.
 */
kpack_error_t kernel_paths_each(const struct file_tree *tree, size_t file,
				kernel_path_use *use, void *arg,
				struct kpackx_error *why);

/*
 * Find the file that PATH, in a row of the database DATABASE, names.  PATH is tried in
 * the database's directory, then from the root; of an absolute path, the longest end that
 * exists in the tree is taken.  Files outside the tree are never found.  false: no such
 * file.
 */
bool kernel_path_find(const struct file_tree *tree, const char *database,
		      struct kp_span path, size_t *file);

#endif
