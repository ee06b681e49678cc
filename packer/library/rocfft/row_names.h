/* SPDX-License-Identifier: MIT */
/* Rows of kernel caches whose keys are the same, told apart. */
#ifndef PACKER_LIBRARY_ROCFFT_ROW_NAMES_H
#define PACKER_LIBRARY_ROCFFT_ROW_NAMES_H

#include "kernel_cache.h"

/* Rows of one key, each of another version or generator: caches of users have a few. */
#define ROW_NAMES_SAME_MAX 1000

/*
 * Of the rows of one key in all PARTS the first keeps it, and those of the last part that follow
 * are named after their hip_version.  What the last part has of another with all that
 * is said about it is left out of it.
 * INVALID_FORMAT: but with other code, both files named; or more than ROW_NAMES_SAME_MAX.
 */
kpack_error_t row_names_tell_apart(struct cache_parts *parts, struct kpackx_error *why);

#endif
