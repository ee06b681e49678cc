/* SPDX-License-Identifier: MIT */
/*
 * The hash of file and command line that clang puts into names of HIP code, 16 hexadecimal
 * digits: of builds for different GPUs it differs, and nothing else in these names does.
 */
#ifndef PACKER_BINARY_HOST_HASH_H
#define PACKER_BINARY_HOST_HASH_H

#include "core/base/span.h"

/* Bytes before a hash, and those of the hash itself. */
#define HOST_HASH_PREFIX_MAX 20
#define HOST_HASH_SIZE 16

/* Does such a hash begin at AT of TEXT, behind what clang writes before it? */
bool host_hash_at(struct kp_span text, size_t at);

/* Is the byte AT of TEXT a digit of one?  *BEGIN: the first. */
bool host_hash_covers(struct kp_span text, size_t at, size_t *begin);

/* Order of names, in which hashes count for nothing. */
int host_name_cmp(struct kp_span a, struct kp_span b);

#endif
