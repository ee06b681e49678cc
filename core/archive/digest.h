/* SPDX-License-Identifier: MIT */
/*
 * Checking an entry's xxh3, and the checksum of its frame if zstd does not, against its bytes
 * while they are decoded, in order.
 */
#ifndef KP_CORE_ARCHIVE_DIGEST_H
#define KP_CORE_ARCHIVE_DIGEST_H

#include "core/base/errors.h"

struct kp_digest {
	struct kp_hasher
		*hash; /* NULL: the entry has no xxh3, and every check succeeds */
	const uint8_t *want;
	struct XXH64_state_s *sum; /* NULL: no checksum of a frame */
	uint32_t want_sum;
};

/*
 * XXH3 has 16 bytes, and is borrowed until fini; NULL: the entry has none.
 * OUT_OF_MEMORY.  kp_digest_fini also accepts a zeroed digest.
 */
kpack_error_t kp_digest_init(struct kp_digest *d, const uint8_t *xxh3,
			     struct kpackx_error *why);
/* Before any bytes: compare them with a frame's checksum SUM, too. */
kpack_error_t kp_digest_want_sum(struct kp_digest *d, uint32_t sum,
				 struct kpackx_error *why);
void kp_digest_fini(struct kp_digest *d);

void kp_digest_add(struct kp_digest *d, const void *data, size_t size);

/* Check that the added bytes have all these.  DECOMPRESSION_FAILED: they have not. */
kpack_error_t kp_digest_check(const struct kp_digest *d, struct kpackx_error *why);

/* Whether WHY is a failure of kp_digest_check, because of the xxh3. */
bool kp_digest_differed(const struct kpackx_error *why);

#endif
