/* SPDX-License-Identifier: MIT */
/* kpack split of archives: one archive for each architecture, frames as they are. */
#ifndef PACKER_SPLIT_ARCHIVES_H
#define PACKER_SPLIT_ARCHIVES_H

#include "args.h"

/*
 * Is PATH a file that is an archive, by its name or by how it begins, or a directory in which
 * there is nothing but files with such names?
 */
bool split_is_archives(const char *path);

/*
 * Take the operands of ARGS apart into its output. Exit status, after reporting faults.
 */
int split_archives(const struct split_args *args);

#endif
