/* SPDX-License-Identifier: MIT */
/*
 * The hash of file and command line that clang puts into names of HIP code: 16
 * hexadecimal digits.  It is the only part of these names that differs in builds for
 * different GPUs.
 */
#ifndef PACKER_BINARY_HOST_HASH_H
#define PACKER_BINARY_HOST_HASH_H

#include "core/base/span.h"

/* Most bytes of the prefix of a hash, and the bytes of the hash itself. */
#define HOST_HASH_PREFIX_MAX 20
#define HOST_HASH_SIZE 16

/* Whether such a hash begins at AT of TEXT, after one of clang's prefixes. */
bool host_hash_at(struct kp_span text, size_t at);

/* Whether the byte AT of TEXT is part of a hash, which begins at *BEGIN. */
bool host_hash_covers(struct kp_span text, size_t at, size_t *begin);

/* Compare names, ignoring hashes in them. */
int host_name_cmp(struct kp_span a, struct kp_span b);

#endif
