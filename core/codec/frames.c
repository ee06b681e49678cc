/* SPDX-License-Identifier: MIT */
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_d_stableOutBuffer: no copy of the window */
#include "frames.h"
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>
#include "codec.h"
#include "core/base/bounds.h"

/* Compressed bytes per step: so few that a step decodes at most some hundred KiB. */
enum { INPUT = 64 << 10 };

struct kp_frames {
	struct kp_source stored;
	enum kp_frames_into into;
	uint64_t stored_at; /* next stored byte to read */
	uint64_t decoded;
	ZSTD_DStream *zstd;
	ZSTD_inBuffer in;
	bool in_frame; /* a frame began and did not end */
	bool full;     /* the output buffer was too small: the window may hold more */
	bool too_wide;
	uint8_t *input;
};

static size_t input_size(const struct kp_frames *f)
{
	return f->stored.size < INPUT ? (size_t)f->stored.size : INPUT;
}

static kpack_error_t refill_input(struct kp_frames *f, struct kpackx_error *why)
{
	uint64_t left = f->stored.size - f->stored_at;
	size_t n = left < INPUT ? (size_t)left : INPUT;

	KP_TRY(kp_source_read(&f->stored, f->stored_at, f->input, n, why));
	f->stored_at += n;
	f->in = (ZSTD_inBuffer){f->input, n, 0};
	return KPACK_SUCCESS;
}

/* KP_FRAMES_WHOLE: the output is the window, so no window is too large. */
static size_t set_window(ZSTD_DStream *zstd, enum kp_frames_into into)
{
	size_t err;

	if (into == KP_FRAMES_PIECES)
		return ZSTD_DCtx_setParameter(zstd, ZSTD_d_windowLogMax,
					      KP_WINDOW_LOG_MAX);
	err = ZSTD_DCtx_setParameter(zstd, ZSTD_d_stableOutBuffer, 1);
	if (ZSTD_isError(err))
		return err;
	return ZSTD_DCtx_setParameter(
		zstd, ZSTD_d_windowLogMax,
		ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);
}

static kpack_error_t not_set(size_t err, struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED, "decoder: %s",
		       ZSTD_getErrorName(err));
}

static kpack_error_t open_frames(struct kp_frames *f, struct kpackx_error *why)
{
	size_t err;

	f->input = malloc(input_size(f) + 1);
	f->zstd = ZSTD_createDStream();
	if (!f->input || !f->zstd)
		return kp_fail_memory(why, INPUT, "decoding");
	err = set_window(f->zstd, f->into);
	return ZSTD_isError(err) ? not_set(err, why) : KPACK_SUCCESS;
}

kpack_error_t kp_frames_open(const struct kp_source *stored, enum kp_frames_into into,
			     struct kp_frames **out, struct kpackx_error *why)
{
	struct kp_frames *f = calloc(1, sizeof(*f));
	kpack_error_t err;

	if (!f)
		return kp_fail_memory(why, sizeof(*f), "decoding");
	f->stored = *stored;
	f->into = into;
	err = open_frames(f, why);
	if (err)
		kp_frames_close(f);
	else
		*out = f;
	return err;
}

void kp_frames_ignore_checksums(struct kp_frames *f)
{
	/* if zstd refuses, it checks them, which does no harm */
	(void)ZSTD_DCtx_setParameter(f->zstd, ZSTD_d_forceIgnoreChecksum,
				     ZSTD_d_ignoreChecksum);
}

kpack_error_t kp_frames_limit_window(struct kp_frames *f, uint64_t max,
				     struct kpackx_error *why)
{
	ZSTD_bounds logs = ZSTD_dParam_getBounds(ZSTD_d_windowLogMax);
	uint64_t least = UINT64_C(1) << logs.lowerBound;
	uint64_t most = UINT64_C(1) << logs.upperBound;
	size_t err;

	max = max < least ? least : max > most ? most : max;
	err = ZSTD_DCtx_setMaxWindowSize(f->zstd, (size_t)max);
	return ZSTD_isError(err) ? not_set(err, why) : KPACK_SUCCESS;
}

/* Whether everything was read, and everything that was read was written. */
static bool at_end(const struct kp_frames *f)
{
	return f->in.pos == f->in.size && f->stored_at == f->stored.size && !f->full;
}

static kpack_error_t check_end(const struct kp_frames *f, struct kpackx_error *why)
{
	if (f->in_frame)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "frame ends after %llu decoded bytes",
			       (unsigned long long)f->decoded);
	return KPACK_SUCCESS;
}

kpack_error_t kp_frames_decode(struct kp_frames *f, void *buf, uint64_t size,
			       uint64_t until, uint64_t *done, struct kpackx_error *why)
{
	ZSTD_outBuffer out = {buf, (size_t)size, (size_t)*done};

	while (out.pos < until) {
		size_t before = out.pos, n;

		if (at_end(f))
			return check_end(f, why);
		if (f->in.pos == f->in.size && f->stored_at < f->stored.size)
			KP_TRY(refill_input(f, why));
		n = ZSTD_decompressStream(f->zstd, &out, &f->in);
		if (ZSTD_isError(n)) {
			f->too_wide = ZSTD_getErrorCode(n) ==
				      ZSTD_error_frameParameter_windowTooLarge;
			return kp_zstd_fail(n, size, why);
		}
		f->in_frame = n != 0;
		f->full = n != 0 && out.pos == out.size && f->into == KP_FRAMES_PIECES;
		f->decoded += out.pos - before;
		*done = out.pos;
	}
	return KPACK_SUCCESS;
}

bool kp_frames_too_wide(const struct kp_frames *f)
{
	return f->too_wide;
}

void kp_frames_close(struct kp_frames *f)
{
	if (!f)
		return;
	ZSTD_freeDStream(f->zstd);
	free(f->input);
	free(f);
}
