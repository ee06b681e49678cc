/* SPDX-License-Identifier: MIT */
/*
 * libcrypto's calls can fail for want of memory only.  A digest remembers that, so that whoever
 * adds to it needs no check for each piece.
 */
#include "digest.h"
#include <openssl/evp.h>
#include <stdio.h>

static const struct {
	const char *name;
	size_t size;
	const EVP_MD *(*algorithm)(void);
} kinds[] = {
	[DIGEST_NONE] = {NULL, 0, NULL},
	[DIGEST_SHA256] = {"sha256", 32, EVP_sha256},
	[DIGEST_SHA384] = {"sha384", 48, EVP_sha384},
	[DIGEST_SHA512] = {"sha512", 64, EVP_sha512},
};

size_t digest_size(enum digest_kind kind)
{
	return kinds[kind].size;
}

bool digest_kind_find(struct kp_span name, enum digest_kind *out)
{
	for (unsigned i = DIGEST_SHA256; i <= DIGEST_SHA512; i++)
		if (kp_span_is(name, kinds[i].name)) {
			*out = i;
			return true;
		}
	return false;
}

void digest_begin(struct digest *d, enum digest_kind kind)
{
	if (!d->ctx)
		d->ctx = EVP_MD_CTX_new();
	d->failed =
		!d->ctx || EVP_DigestInit_ex(d->ctx, kinds[kind].algorithm(), NULL) != 1;
}

void digest_add(struct digest *d, struct kp_span data)
{
	if (!d->failed)
		d->failed = EVP_DigestUpdate(d->ctx, data.data, data.size) != 1;
}

kpack_error_t digest_write(void *digest, const void *data, size_t size,
			   struct kpackx_error *why)
{
	(void)why;
	digest_add(digest, (struct kp_span){data, size});
	return KPACK_SUCCESS;
}

kpack_error_t digest_end(struct digest *d, uint8_t out[DIGEST_MAX],
			 struct kpackx_error *why)
{
	if (d->failed || EVP_DigestFinal_ex(d->ctx, out, NULL) != 1)
		return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY,
			       "no memory in which libcrypto can hash");
	return KPACK_SUCCESS;
}

kpack_error_t digest_end_text(struct digest *d, char out[DIGEST_TEXT],
			      struct kpackx_error *why)
{
	uint8_t bytes[DIGEST_MAX];

	KP_TRY(digest_end(d, bytes, why));
	for (size_t i = 0; i < digest_size(DIGEST_SHA256); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return KPACK_SUCCESS;
}

/* The context is kept from one digest to the next, and freed here. */
void digest_fini(struct digest *d)
{
	EVP_MD_CTX_free(d->ctx);
	*d = (struct digest){0};
}
