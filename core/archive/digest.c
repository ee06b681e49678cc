/* SPDX-License-Identifier: MIT */
#include "digest.h"
#include <string.h>
#include <xxhash.h>

static const char DIFFERS[] = "content does not match its xxh3";

kpack_error_t kp_digest_init(struct kp_digest *d, const struct kp_meta *meta,
			     struct kpackx_error *why)
{
	*d = (struct kp_digest){0};
	if (!meta->has_xxh3)
		return KPACK_SUCCESS;
	memcpy(d->want, meta->xxh3, sizeof(d->want));
	d->state = XXH3_createState();
	if (!d->state)
		return kp_fail_memory(why, 0, "hashing");
	XXH3_128bits_reset(d->state);
	return KPACK_SUCCESS;
}

void kp_digest_fini(struct kp_digest *d)
{
	XXH3_freeState(d->state);
}

void kp_digest_add(struct kp_digest *d, const void *data, size_t size)
{
	if (d->state)
		XXH3_128bits_update(d->state, data, size);
}

kpack_error_t kp_digest_check(const struct kp_digest *d, struct kpackx_error *why)
{
	XXH128_canonical_t have;

	if (!d->state)
		return KPACK_SUCCESS;
	XXH128_canonicalFromHash(&have, XXH3_128bits_digest(d->state));
	if (memcmp(have.digest, d->want, sizeof(d->want)) != 0)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED, "%s", DIFFERS);
	return KPACK_SUCCESS;
}

bool kp_digest_differed(const struct kpackx_error *why)
{
	return why->code == KPACK_ERROR_DECOMPRESSION_FAILED &&
	       strcmp(why->text, DIFFERS) == 0;
}
