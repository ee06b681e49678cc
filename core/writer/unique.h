/* SPDX-License-Identifier: MIT */
/*
 * The run of unique bytes of a shared archive, while it is written: in a file without a
 * name, beside the archive.  One thread at a time, except kp_unique_read after
 * kp_unique_flush.
 */
#ifndef KP_CORE_WRITER_UNIQUE_H
#define KP_CORE_WRITER_UNIQUE_H

#include "core/base/file.h"

struct kp_unique {
	struct kp_outfile file;
	uint64_t size;
	uint8_t *tail; /* bytes from TAIL_AT on, which are not yet written */
	uint64_t tail_at;
};

/* Make the file in the directory open at DIR.  On failure, fini may be called. */
kpack_error_t kp_unique_init(struct kp_unique *u, int dir, struct kpackx_error *why);
void kp_unique_fini(struct kp_unique *u); /* accepts a zeroed run */

kpack_error_t kp_unique_append(struct kp_unique *u, const uint8_t *data, size_t size,
			       struct kpackx_error *why);
/* Read SIZE bytes at POS, which the run has. */
kpack_error_t kp_unique_read(const struct kp_unique *u, uint64_t pos, uint8_t *buf,
			     size_t size, struct kpackx_error *why);
kpack_error_t kp_unique_flush(struct kp_unique *u, struct kpackx_error *why);

#endif
