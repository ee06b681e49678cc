/* SPDX-License-Identifier: MIT */
#include "digest.h"
#include <string.h>
#include <xxhash.h>
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
	XXH64_freeState(d->sum);
}

kpack_error_t kp_digest_want_sum(struct kp_digest *d, uint32_t sum,
				 struct kpackx_error *why)
{
	d->sum = XXH64_createState();
	if (!d->sum)
		return kp_fail_memory(why, 0, "hashing");
	XXH64_reset(d->sum, 0);
	d->want_sum = sum;
	return KPACK_SUCCESS;
}

void kp_digest_add(struct kp_digest *d, const void *data, size_t size)
{
	if (d->hash)
		kp_hasher_add(d->hash, data, size);
	if (d->sum)
		XXH64_update(d->sum, data, size);
}

kpack_error_t kp_digest_check(const struct kp_digest *d, struct kpackx_error *why)
{
	struct kp_hash have;

	if (d->sum && (uint32_t)XXH64_digest(d->sum) != d->want_sum)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "content does not match the checksum of its frame");
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
