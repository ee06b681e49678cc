/* SPDX-License-Identifier: MIT */
#include "digest.h"
#include <string.h>
#include "core/base/hash.h"

static const char DIFFERS[] = "content does not match its xxh3";

kpack_error_t kp_digest_init(struct kp_digest *d, const uint8_t *xxh3,
			     struct kpackx_error *why)
{
	*d = (struct kp_digest){.want = xxh3};
	if (!xxh3)
		return KPACK_SUCCESS;
	d->hash = kp_hasher_new();
	return d->hash ? KPACK_SUCCESS : kp_fail_memory(why, 0, "hashing");
}

void kp_digest_fini(struct kp_digest *d)
{
	kp_hasher_free(d->hash);
}

void kp_digest_add(struct kp_digest *d, const void *data, size_t size)
{
	if (d->hash)
		kp_hasher_add(d->hash, data, size);
}

kpack_error_t kp_digest_check(const struct kp_digest *d, struct kpackx_error *why)
{
	struct kp_hash have;

	if (!d->hash)
		return KPACK_SUCCESS;
	have = kp_hasher_value(d->hash);
	if (!kp_hash_is(&have, d->want))
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED, "%s", DIFFERS);
	return KPACK_SUCCESS;
}

bool kp_digest_differed(const struct kpackx_error *why)
{
	return why->code == KPACK_ERROR_DECOMPRESSION_FAILED &&
	       strcmp(why->text, DIFFERS) == 0;
}
