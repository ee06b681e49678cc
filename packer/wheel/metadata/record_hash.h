/* SPDX-License-Identifier: MIT */
/* The hashes that RECORD may have, computed with libcrypto. */
#ifndef PACKER_WHEEL_METADATA_RECORD_HASH_H
#define PACKER_WHEEL_METADATA_RECORD_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/errors.h"
#include "core/base/span.h"

enum record_kind {
	RECORD_NONE, /* a line without a hash */
	RECORD_SHA256,
	RECORD_SHA384,
	RECORD_SHA512,
};

#define RECORD_DIGEST_MAX 64

/* The size of a digest in bytes; 0 for RECORD_NONE. */
size_t record_digest_size(enum record_kind kind);

/* Find the kind called NAME ("sha256"); false: unknown, or not allowed in wheels. */
bool record_kind_find(struct kp_span name, enum record_kind *out);

/* Computes any number of hashes, one after another.  The caller frees *OUT. */
struct record_hash;

kpack_error_t record_hash_new(struct record_hash **out, struct kpackx_error *why);
void record_hash_free(struct record_hash *hash); /* accepts NULL */

void record_hash_begin(struct record_hash *hash, enum record_kind kind);
void record_hash_add(struct record_hash *hash, struct kp_span data);
/* OUT_OF_MEMORY: libcrypto failed. */
kpack_error_t record_hash_end(struct record_hash *hash, uint8_t digest[RECORD_DIGEST_MAX],
			      struct kpackx_error *why);

#endif
