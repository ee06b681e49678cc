/* SPDX-License-Identifier: MIT */
/*
 * In which order LLVM's hash tables of strings give their keys: files that its tools write have
 * their strings in that order.
 */
#ifndef PACKER_OFFLOAD_LLVM_HASH_H
#define PACKER_OFFLOAD_LLVM_HASH_H

#include "core/base/errors.h"
#include "core/base/span.h"

enum llvm_hash {
	LLVM_HASH_CITY, /* up to LLVM 22; keys of at most 64 bytes are ordered as there */
	LLVM_HASH_XXH3, /* from 23 on */
};

/*
 * ORDER, which has N members, becomes the numbers of KEYS, which all differ and were inserted as
 * they stand, in the order of the table.  OUT_OF_MEMORY.
 */
kpack_error_t llvm_hash_order(enum llvm_hash hash, const struct kp_span *keys, size_t n,
			      size_t *order, struct kpackx_error *why);

#endif
