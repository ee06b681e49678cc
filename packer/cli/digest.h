/* SPDX-License-Identifier: MIT */
/* SHA-256, SHA-384 and SHA-512, computed by libcrypto. */
#ifndef PACKER_BASE_DIGEST_H
#define PACKER_BASE_DIGEST_H

#include "core/base/errors.h"
#include "core/base/span.h"

enum digest_kind {
	DIGEST_NONE,
	DIGEST_SHA256,
	DIGEST_SHA384,
	DIGEST_SHA512,
};

#define DIGEST_MAX 64  /* bytes of the longest digest */
#define DIGEST_TEXT 65 /* a SHA-256 in hexadecimal digits, with NUL */

/* The size of a digest in bytes; 0 for DIGEST_NONE. */
size_t digest_size(enum digest_kind kind);

/* Find the kind called NAME ("sha256"); false: there is none. */
bool digest_kind_find(struct kp_span name, enum digest_kind *out);

/* Computes any number of digests, one after another.  Begins zeroed. */
struct digest {
	struct evp_md_ctx_st *ctx;
	bool failed;
};

void digest_begin(struct digest *d, enum digest_kind kind);
void digest_add(struct digest *d, struct kp_span data);
/* As `write` of struct kp_sink: add the bytes to DIGEST. */
kpack_error_t digest_write(void *digest, const void *data, size_t size,
			   struct kpackx_error *why);
/* The digest's bytes, or a SHA-256 as text.  OUT_OF_MEMORY: libcrypto failed. */
kpack_error_t digest_end(struct digest *d, uint8_t out[DIGEST_MAX],
			 struct kpackx_error *why);
kpack_error_t digest_end_text(struct digest *d, char out[DIGEST_TEXT],
			      struct kpackx_error *why);
void digest_fini(struct digest *d);

#endif
