/* SPDX-License-Identifier: MIT */
/* The owner of a key that several files of a tree would get. */
#ifndef PACKER_LIBRARY_KEY_OWNERS_H
#define PACKER_LIBRARY_KEY_OWNERS_H

#include "library.h"

/*
 * Two trees of one library in one install tree give their files the same keys besides the
 * paths.  For each architecture the first path keeps a key; of the others, which all keep
 * their path, it becomes a warning.  OUT_OF_MEMORY.
 */
kpack_error_t key_owners_settle(struct library_found *found, struct kpackx_error *why);

#endif
