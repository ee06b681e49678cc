/* SPDX-License-Identifier: MIT */
#include <openssl/evp.h>
#include <stdlib.h>
#include "record_hash.h"

static const struct {
	const char *name;
	size_t size;
	const EVP_MD *(*algorithm)(void);
} kinds[] = {
	[RECORD_NONE] = {NULL, 0, NULL},
	[RECORD_SHA256] = {"sha256", 32, EVP_sha256},
	[RECORD_SHA384] = {"sha384", 48, EVP_sha384},
	[RECORD_SHA512] = {"sha512", 64, EVP_sha512},
};

struct record_hash {
	EVP_MD_CTX *ctx;
	bool failed;
};

size_t record_digest_size(enum record_kind kind)
{
	return kinds[kind].size;
}

bool record_kind_find(struct kp_span name, enum record_kind *out)
{
	for (unsigned i = RECORD_SHA256; i <= RECORD_SHA512; i++)
		if (kp_span_is(name, kinds[i].name)) {
			*out = i;
			return true;
		}
	return false;
}

kpack_error_t record_hash_new(struct record_hash **out, struct kpackx_error *why)
{
	struct record_hash *hash = calloc(1, sizeof(*hash));

	if (hash)
		hash->ctx = EVP_MD_CTX_new();
	if (!hash || !hash->ctx) {
		record_hash_free(hash);
		return kp_fail_memory(why, sizeof(*hash), "hash");
	}
	*out = hash;
	return KPACK_SUCCESS;
}

void record_hash_free(struct record_hash *hash)
{
	if (hash)
		EVP_MD_CTX_free(hash->ctx);
	free(hash);
}

void record_hash_begin(struct record_hash *hash, enum record_kind kind)
{
	hash->failed = EVP_DigestInit_ex(hash->ctx, kinds[kind].algorithm(), NULL) != 1;
}

void record_hash_add(struct record_hash *hash, struct kp_span data)
{
	if (!hash->failed)
		hash->failed = EVP_DigestUpdate(hash->ctx, data.data, data.size) != 1;
}

kpack_error_t record_hash_end(struct record_hash *hash, uint8_t digest[RECORD_DIGEST_MAX],
			      struct kpackx_error *why)
{
	if (hash->failed || EVP_DigestFinal_ex(hash->ctx, digest, NULL) != 1)
		return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY, "libcrypto cannot hash");
	return KPACK_SUCCESS;
}
