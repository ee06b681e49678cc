/* SPDX-License-Identifier: MIT */
/*
 * Check on disk, before the output trees get their names, that together they are the
 * input: every file, link and directory of the input is in the one output tree it belongs
 * to, with the same bytes or converted; every object of a converted binary, and every
 * packed file, is in one archive under its key and with its hash; nothing else exists.
 * Trees that have these names already must be those of an earlier run, without --force.
 */
#ifndef PACKER_SPLIT_CHECK_H
#define PACKER_SPLIT_CHECK_H

#include "split.h"

/*
 * AGAIN: there may be trees to replace.  INVALID_FORMAT: a path differs; the error names
 * the first.  INVALID_ARGUMENT: a tree in the way is another's.  IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t split_check(const struct split *s, bool *again, struct kpackx_error *why);

#endif
