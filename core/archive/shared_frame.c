/* SPDX-License-Identifier: MIT */
#include "shared_frame.h"
#include <stdlib.h>
#include <zstd.h>
#include "core/base/file.h"
#include "core/base/hash.h"
#include "frames.h"
#include "shared_internal.h"

/* The header must be as the format says, so that every reader decodes the same. */
static kpack_error_t check_header(struct kp_span stored, uint64_t size,
				  struct kpackx_error *why)
{
	struct kp_frame_header h;

	if (!kp_frame_header_read(stored, &h) || h.skippable || h.dictionary ||
	    !h.checksum || h.content != size)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "not one frame of %llu bytes, with a checksum",
			       (unsigned long long)size);
	return KPACK_SUCCESS;
}

static kpack_error_t decode_stored(struct kp_span stored, struct kp_span prefix,
				   uint8_t *buf, uint64_t size, struct kpackx_error *why)
{
	KP_TRY(check_header(stored, size, why));
	return kp_zstd_decode_with(prefix, stored, buf, (size_t)size, why);
}

kpack_error_t kp_shared_read_frame(const struct kp_shared *s, uint32_t frame,
				   uint8_t *buf, struct kpackx_error *why)
{
	uint64_t at = s->offsets[frame];
	size_t n = (size_t)(s->offsets[frame + 1] - at);

	KP_TRY(kp_file_pread(s->fd, at, buf, n, why));
	if (s->hashes && kp_hash64(buf, n, 0) != s->hashes[frame])
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "does not match its hash: damaged");
	return KPACK_SUCCESS;
}

kpack_error_t kp_frame_decode(const struct kp_shared *s, uint32_t frame,
			      struct kp_span prefix, uint8_t *buf,
			      struct kpackx_error *why)
{
	size_t n = (size_t)(s->offsets[frame + 1] - s->offsets[frame]);
	uint8_t *stored = malloc(n);
	kpack_error_t err;

	if (!stored)
		return kp_fail_memory(why, n, "a block");
	err = kp_shared_read_frame(s, frame, stored, why);
	if (!err)
		err = decode_stored((struct kp_span){stored, n}, prefix, buf,
				    kp_shared_frame_size(s, frame), why);
	free(stored);
	if (!err)
		return KPACK_SUCCESS;
	if (frame < kp_shared_first_block(s))
		return kp_fail_prefix(why, err, "dictionary");
	return kp_fail_prefix(why, err, "block %u", frame - kp_shared_first_block(s));
}
