/* SPDX-License-Identifier: MIT */
/* Archives that a prefix has before it is split, and --gpu-targets. */
#ifndef PACKER_SPLIT_OLD_ARCHIVES_H
#define PACKER_SPLIT_OLD_ARCHIVES_H

#include "split.h"

/*
 * After the packing, which copied them: remove those that are not asked for, whose outcome is
 * NOT_WANTED then, and count them.  What cannot be read is reported, and stays.
 */
kpack_error_t split_old_drop(const struct split *s, struct split_prefix *i,
			     struct kpackx_error *why);

#endif
