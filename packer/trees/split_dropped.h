/* SPDX-License-Identifier: MIT */
/* Count, per architecture, the code that --gpu-targets left out. */
#ifndef PACKER_SPLIT_DROPPED_H
#define PACKER_SPLIT_DROPPED_H

#include "split.h"

/* Fill S's list of dropped code, after the run.  Errors of old_archive_open. */
kpack_error_t split_count_dropped(struct split *s, struct kpackx_error *why);
void split_free_dropped(struct split *s);

#endif
