/* SPDX-License-Identifier: MIT */
/* The xxh3 of an entry, compared with its bytes as they are decoded, in order. */
#ifndef KP_CORE_ARCHIVE_DIGEST_H
#define KP_CORE_ARCHIVE_DIGEST_H

#include "core/base/errors.h"
#include "core/toc/meta.h"

struct kp_digest {
	void *state; /* NULL: the entry has no xxh3, and any bytes are right */
	uint8_t want[16];
};

/* OUT_OF_MEMORY.  Accepts a zeroed one in fini. */
kpack_error_t kp_digest_init(struct kp_digest *d, const struct kp_meta *meta,
			     struct kpackx_error *why);
void kp_digest_fini(struct kp_digest *d);

void kp_digest_add(struct kp_digest *d, const void *data, size_t size);

/* Were that the bytes?  DECOMPRESSION_FAILED: no. */
kpack_error_t kp_digest_check(const struct kp_digest *d, struct kpackx_error *why);

/* Did kp_digest_check fail with WHY? */
bool kp_digest_differed(const struct kpackx_error *why);

#endif
