/* SPDX-License-Identifier: MIT */
/* Choose the group that the archives of each prefix are named after: see split.h. */
#ifndef PACKER_SPLIT_GROUPS_H
#define PACKER_SPLIT_GROUPS_H

#include "split.h"

/*
 * Call it after all prefixes are scanned.  INVALID_ARGUMENT: a group cannot be part of a
 * file name.
 */
kpack_error_t split_choose_groups(struct split *s, struct kpackx_error *why);

/* True if the prefix has binaries to convert, regardless of --gpu-targets. */
bool split_has_code(const struct split_prefix *i);

#endif
