/* SPDX-License-Identifier: MIT */
/*
 * Hashes of contents (XXH3).  They find what may be equal and detect damage; they do not protect
 * against forgery.
 */
#ifndef KP_CORE_BASE_HASH_H
#define KP_CORE_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "span.h"

/* XXH3-128 in canonical (big-endian) byte order, as metadata.xxh3 stores it. */
struct kp_hash {
	uint8_t bytes[16];
};

struct kp_hash kp_hash_of(const void *data, size_t size);
/* Is HASH the 16 bytes at BYTES? */
bool kp_hash_is(const struct kp_hash *hash, const uint8_t bytes[16]);

/* The hash of data that comes in pieces.  NULL: out of memory. */
struct kp_hasher *kp_hasher_new(void);
void kp_hasher_free(struct kp_hasher *h); /* accepts NULL */
void kp_hasher_reset(struct kp_hasher *h);
void kp_hasher_add(struct kp_hasher *h, const void *data, size_t size);
/* The hash of all pieces since new or reset. */
struct kp_hash kp_hasher_value(const struct kp_hasher *h);

/* 64 bits, the same in every process: the writer of a file can make its names collide. */
uint64_t kp_hash64(const void *data, size_t size, uint64_t seed);

/*
 * 64 bits for the slots of a hash table.  They depend on a random number of this process,
 * so that nobody can write a file whose names share slots.  Nothing else may depend on them.
 */
uint64_t kp_slot_hash(const void *data, size_t size, uint64_t seed);

#endif
