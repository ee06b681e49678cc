/* SPDX-License-Identifier: MIT */
/*
 * kpack split of archives: write one archive per architecture, copying frames as they
 * are.
 */
#ifndef PACKER_SPLIT_ARCHIVES_H
#define PACKER_SPLIT_ARCHIVES_H

#include "split_args.h"

/*
 * True if PATH is an archive, by its name or by its magic bytes, or a directory that
 * contains nothing but files named like archives.
 */
bool split_is_archives(const char *path);

/*
 * Split the operands of ARGS into its output.  Returns the exit status; reports faults.
 */
int split_archives(const struct split_args *args);

#endif
