/* SPDX-License-Identifier: MIT */
/* Apply --gpu-targets to the archives that already exist in a prefix. */
#ifndef PACKER_SPLIT_OLD_ARCHIVES_H
#define PACKER_SPLIT_OLD_ARCHIVES_H

#include "split.h"

/*
 * Call it after packing, which copies the archives.  Removes the copies that are not
 * requested, sets their disposition to NOT_WANTED, and counts them.  An unreadable archive is
 * reported and stays in the generic tree.
 */
kpack_error_t split_old_drop(const struct split *s, struct split_prefix *i,
			     struct kpackx_error *why);

#endif
