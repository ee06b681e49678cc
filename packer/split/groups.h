/* SPDX-License-Identifier: MIT */
/* By which group the archives of each prefix are named: see split.h. */
#ifndef PACKER_SPLIT_GROUPS_H
#define PACKER_SPLIT_GROUPS_H

#include "split.h"

/* After the scans.  OUT_OF_MEMORY; INVALID_ARGUMENT: a group gives no file name. */
kpack_error_t split_choose_groups(struct split *s, struct kpackx_error *why);

/* Has it binaries that are converted, whatever is asked for? */
bool split_has_code(const struct split_prefix *i);

#endif
