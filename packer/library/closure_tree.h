/* SPDX-License-Identifier: MIT */
/*
 * An install tree as programs see it: its files and those that its archives show, merged;
 * and the libraries that files of kernel databases belong to.
 */
#ifndef PACKER_CLOSURE_INSTALL_TREE_H
#define PACKER_CLOSURE_INSTALL_TREE_H

#include "packer/archives/operands.h"
#include "library.h"
#include "core/view/view.h"

struct install_tree {
	struct file_tree files;
	struct library_found found;
	struct archives archives; /* hold the files that are entries */
	struct kp_view *view;
	size_t n_databases; /* files of kernel databases */
	size_t n_faults;    /* faults; each was reported */
};

/* The trees and archives to open. */
struct install_tree_of {
	int n_paths;
	char **paths;
	const char *prefix; /* put before the path of each plain file; or "" */
	const struct library_set *libraries;
	/*
	 * The caller packs the tree, and itself reports faults of single plain files, and
	 * paths that have other bytes in archives.
	 */
	bool packing;
};

/*
 * Open the trees, directories of archives, and archives OF as one tree.  If paths are
 * equal, a plain file wins over an entry, and an earlier file over a later one.  Symbolic
 * links to files count as files.  If an entry's metadata names a library of the
 * set, that is trusted.  Faults of files, conflicts between archives, and paths with two
 * contents are reported and counted.  The caller must close OUT in any case.
 */
kpack_error_t install_tree_open(const struct install_tree_of *of,
				struct install_tree *out, struct kpackx_error *why);
void install_tree_close(struct install_tree *tree);

#endif
