/* SPDX-License-Identifier: MIT */
/*
 * The iteration order of LLVM's hash tables of strings: files that LLVM's tools write
 * have their strings in this order.
 */
#ifndef PACKER_OFFLOAD_LLVM_HASH_H
#define PACKER_OFFLOAD_LLVM_HASH_H

#include "core/base/span.h"

enum llvm_hash {
	LLVM_HASH_CITY, /* up to LLVM 22; exact for keys of at most 64 bytes */
	LLVM_HASH_XXH3, /* from LLVM 23 on */
};

/*
 * Fill ORDER, which has room for N, with the indexes of KEYS in the order of a table into
 * which the keys were inserted as listed.  All KEYS differ.
 */
void llvm_hash_order(enum llvm_hash hash, const struct kp_span *keys, size_t n,
		     size_t *order);

#endif
