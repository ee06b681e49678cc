/* SPDX-License-Identifier: MIT */
/*
 * An install tree as programs see it: its files, and what its archives show, in one; and
 * whose the files of kernel databases are.
 */
#ifndef PACKER_CLOSURE_INSTALL_TREE_H
#define PACKER_CLOSURE_INSTALL_TREE_H

#include "packer/archives/operands.h"
#include "packer/library/library.h"
#include "core/view/view.h"

struct install_tree {
	struct file_tree files;
	struct library_found found;
	struct archives archives; /* of entries among the files */
	struct kp_view *view;
	size_t n_databases; /* files of kernel databases */
	size_t n_faults;    /* each was reported */
};

/* What is to be opened. */
struct install_tree_of {
	int n_paths;
	char **paths;
	const char *prefix; /* stands before the path of each plain file; "" */
	const struct library_set *libraries;
	/*
	 * The caller packs it, and reports faults of single plain files, and paths with
	 * other bytes in archives.
	 */
	bool packing;
};

/*
 * Open the trees, directories of archives, and archives OF as one: of equal paths a
 * plain file is taken before an entry, and the earlier before the later; symbolic links
 * to files are files.  Entries that say whose they are are believed.  Faults of files,
 * what the archives cannot show together, and paths with two contents are reported and
 * counted.  OUT must be closed in any case.
 */
kpack_error_t install_tree_open(const struct install_tree_of *of,
				struct install_tree *out, struct kpackx_error *why);
void install_tree_close(struct install_tree *tree);

#endif
