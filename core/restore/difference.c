/* SPDX-License-Identifier: MIT */
#include "difference.h"
#include <stdlib.h>
#include <zstd.h>

/* A difference is compressed data, which a higher level hardly makes smaller. */
enum { LEVEL = 3 };

/* The logarithm of a window that has all of PAYLOAD and ORIGINAL. */
static int window_for(struct kp_span payload, struct kp_span original)
{
	ZSTD_bounds bounds = ZSTD_cParam_getBounds(ZSTD_c_windowLog);
	int log = bounds.lowerBound;

	while (log < bounds.upperBound &&
	       UINT64_C(1) << log < (uint64_t)payload.size + original.size)
		log++;
	return log;
}

static size_t encode_difference(ZSTD_CCtx *ctx, struct kp_span payload,
				struct kp_span original, uint8_t *out, size_t cap)
{
	size_t n = ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, LEVEL);

	if (!ZSTD_isError(n))
		n = ZSTD_CCtx_setParameter(ctx, ZSTD_c_enableLongDistanceMatching, 1);
	if (!ZSTD_isError(n))
		n = ZSTD_CCtx_setParameter(ctx, ZSTD_c_windowLog,
					   window_for(payload, original));
	if (!ZSTD_isError(n))
		n = ZSTD_CCtx_refPrefix(ctx, payload.data, payload.size);
	if (ZSTD_isError(n))
		return n;
	return ZSTD_compress2(ctx, out, cap, original.data, original.size);
}

kpack_error_t kp_difference_make(struct kp_span payload, struct kp_span original,
				 uint8_t **out, size_t *size, struct kpackx_error *why)
{
	size_t cap = ZSTD_compressBound(original.size);
	uint8_t *data = malloc(cap);
	ZSTD_CCtx *ctx = ZSTD_createCCtx();
	size_t n = 0;

	if (data && ctx)
		n = encode_difference(ctx, payload, original, data, cap);
	ZSTD_freeCCtx(ctx);
	if (!data || !ctx || ZSTD_isError(n)) {
		free(data);
		return kp_fail_memory(why, cap, "a kept container");
	}
	*out = data;
	*size = n;
	return KPACK_SUCCESS;
}

static size_t decode_difference(ZSTD_DCtx *ctx, struct kp_span payload,
				struct kp_span difference, uint8_t *out, size_t size)
{
	/* no window is allocated for a frame that is decoded in one call */
	size_t n = ZSTD_DCtx_setParameter(
		ctx, ZSTD_d_windowLogMax,
		ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);

	if (!ZSTD_isError(n))
		n = ZSTD_DCtx_refPrefix(ctx, payload.data, payload.size);
	if (ZSTD_isError(n))
		return n;
	return ZSTD_decompressDCtx(ctx, out, size, difference.data, difference.size);
}

kpack_error_t kp_difference_apply(struct kp_span payload, struct kp_span difference,
				  uint8_t *out, size_t size, struct kpackx_error *why)
{
	ZSTD_DCtx *ctx = ZSTD_createDCtx();
	size_t n;

	if (!ctx)
		return kp_fail_memory(why, size, "a kept container");
	n = decode_difference(ctx, payload, difference, out, size);
	ZSTD_freeDCtx(ctx);
	if (n == size)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
		       "the kept container is damaged: %s",
		       ZSTD_isError(n) ? ZSTD_getErrorName(n) : "it is smaller");
}
