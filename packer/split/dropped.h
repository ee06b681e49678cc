/* SPDX-License-Identifier: MIT */
/* What --gpu-targets left out, counted by architecture. */
#ifndef PACKER_SPLIT_DROPPED_H
#define PACKER_SPLIT_DROPPED_H

#include "split.h"

/* After the run.  OUT_OF_MEMORY. */
kpack_error_t split_count_dropped(struct split *s, struct kpackx_error *why);
void split_free_dropped(struct split *s);

#endif
