/* SPDX-License-Identifier: MIT */
/*
 * Find Tensile's directories by their files, wherever they are: distributions put a
 * version between the library's name and "library", and users put them anywhere.
 */
#ifndef PACKER_LIBRARY_TENSILE_DIRECTORY_H
#define PACKER_LIBRARY_TENSILE_DIRECTORY_H

#include "file_tree.h"

/*
 * Whether PATH is a file of LIBRARY ("rocblas") because the other files of its directory,
 * or of the GPUs' directories next to it, have names that only Tensile gives.  The
 * library is that which a component of the path names, or else the one whose files these
 * are.  REST gets the part of PATH after the library's directory.
 *
 * In a directory that is not named "library" only the files belong to it whose names
 * Tensile's grammar has.
 */
bool tensile_directory_has(const struct file_tree *tree, const char *path,
			   const char *library, struct kp_span *rest);

#endif
