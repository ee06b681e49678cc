/* SPDX-License-Identifier: MIT */
/*
 * A database of where kernels are: a table kernels(arch, length, precision, kernel_path)
 * with any further columns, a row for each code object beside it.
 */
#ifndef PACKER_LIBRARY_ROCFFT_KERNEL_PATHS_H
#define PACKER_LIBRARY_ROCFFT_KERNEL_PATHS_H

#include "packer/files/file_tree.h"
#include "packer/library/facts.h"
#include "packer/library/sqlite/file.h"

/* Rows of one database. */
#define KERNEL_PATHS_MAX (1 << 20)

struct kernel_path {
	uint64_t row; /* from 1 */
	/* As text, empty for NULL; as long as the row */
	struct kp_span arch, length, precision, path;
	bool exists;
	size_t file;         /* exists: in the tree */
	struct facts *facts; /* length, precision, factors, batch ...: to be taken over */
};

typedef kpack_error_t kernel_path_use(void *arg, struct kernel_path *path,
				      struct kpackx_error *why);

/* Is there such a table? */
kpack_error_t kernel_paths_are_there(struct sqlite_file *f, bool *are,
				     struct kpackx_error *why);

/*
 * Use each row of the database FILE of TREE, in order; none when it has no such table.  A path
 * is looked for in the database's directory, then from the root; of one that is absolute
 * the longest end that is there counts.  Nothing outside the tree is found.
 * INVALID_FORMAT: damaged; NOT_IMPLEMENTED: built without SQLite; whatever USE returns.
 */
kpack_error_t kernel_paths_each(const struct file_tree *tree, size_t file,
				kernel_path_use *use, void *arg,
				struct kpackx_error *why);

/* The file that PATH names in a database that is at DATABASE.  false: none. */
bool kernel_path_find(const struct file_tree *tree, const char *database,
		      struct kp_span path, size_t *file);

#endif
