/* SPDX-License-Identifier: MIT */
/* kpack split of archives: one archive for each architecture, frames as they are. */
#ifndef SPLIT_ARCHIVES_H
#define SPLIT_ARCHIVES_H

#include "split_args.h"

/* Is PATH a file that is an archive, by its name or by how it begins? */
bool split_is_archive(const char *path);

/* Take the operands of ARGS apart into its output.  Exit status, after telling. */
int split_archives(const struct split_args *args);

#endif
