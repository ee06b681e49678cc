/* SPDX-License-Identifier: MIT */
#include "sha256.h"
#include <stdio.h>
#include <stdlib.h>
#include <openssl/evp.h>

struct sha256 {
	EVP_MD_CTX *ctx;
	bool failed;
};

kpack_error_t sha256_new(struct sha256 **out, struct kpackx_error *why)
{
	struct sha256 *hash = calloc(1, sizeof(*hash));

	if (hash)
		hash->ctx = EVP_MD_CTX_new();
	if (!hash || !hash->ctx) {
		sha256_free(hash);
		return kp_fail_memory(why, sizeof(*hash), "SHA-256");
	}
	*out = hash;
	return KPACK_SUCCESS;
}

void sha256_free(struct sha256 *hash)
{
	if (hash)
		EVP_MD_CTX_free(hash->ctx);
	free(hash);
}

void sha256_begin(struct sha256 *hash)
{
	hash->failed = EVP_DigestInit_ex(hash->ctx, EVP_sha256(), NULL) != 1;
}

void sha256_add(struct sha256 *hash, struct kp_span data)
{
	if (!hash->failed)
		hash->failed = EVP_DigestUpdate(hash->ctx, data.data, data.size) != 1;
}

void sha256_end(struct sha256 *hash, char out[SHA256_TEXT])
{
	unsigned char digest[32];

	out[0] = '\0';
	if (hash->failed || EVP_DigestFinal_ex(hash->ctx, digest, NULL) != 1)
		return;
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
}
