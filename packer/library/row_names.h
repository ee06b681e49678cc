/* SPDX-License-Identifier: MIT */
/* Make the keys of rows from kernel caches unique. */
#ifndef PACKER_LIBRARY_ROCFFT_ROW_NAMES_H
#define PACKER_LIBRARY_ROCFFT_ROW_NAMES_H

#include "kernel_cache.h"

/* Limit of rows with one key, of other versions or generators: real caches have few. */
#define ROW_NAMES_SAME_MAX 1000

/*
 * If rows in PARTS have equal keys, the first row keeps its key, and further rows of the
 * last part are named after their hip_version.  A row of the last part that another part
 * has with the same metadata is removed from the last part.
 * INVALID_FORMAT: such a row has other code than the other part's (WHY names both files);
 * or more than ROW_NAMES_SAME_MAX rows have one key.
 */
kpack_error_t row_names_make_unique(struct cache_files *parts, struct kpackx_error *why);

#endif
