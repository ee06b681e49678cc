/* SPDX-License-Identifier: MIT */
/* SHA-256 by libcrypto. */
#ifndef PACKER_BASE_SHA256_H
#define PACKER_BASE_SHA256_H

#include "core/base/errors.h"
#include "core/base/span.h"

#define SHA256_TEXT 65

struct sha256;

/* Make an object for any number of hashes, one at a time.  The caller frees *OUT. */
kpack_error_t sha256_new(struct sha256 **out, struct kpackx_error *why);
void sha256_free(struct sha256 *hash); /* NULL is fine */

void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, struct kp_span data);
/* The hash in hexadecimal digits; "" if libcrypto failed. */
void sha256_end(struct sha256 *hash, char out[SHA256_TEXT]);

#endif
