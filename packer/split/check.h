/* SPDX-License-Identifier: MIT */
/*
 * Is the union of the trees that are made the input?  Looked for on the disk, before they get
 * their names: every file, link and directory of the input is in the one tree it belongs to,
 * with the same bytes, or converted; every object of a converted binary, and every file that
 * was packed, is in one archive under its key with its hash; nothing besides is there.
 */
#ifndef PACKER_SPLIT_CHECK_H
#define PACKER_SPLIT_CHECK_H

#include "split.h"

/* INVALID_FORMAT: it is not, and the first path that differs.  IO_ERROR, OUT_OF_MEMORY. */
kpack_error_t split_check(const struct split *s, struct kpackx_error *why);

#endif
