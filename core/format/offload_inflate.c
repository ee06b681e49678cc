/* SPDX-License-Identifier: MIT */
#include "offload_inflate.h"
#include <inttypes.h>
#include <stdlib.h>
#include <zstd.h>
#include "core/archive/codec.h"
#include "core/base/bounds.h"

#ifndef KP_WITH_ZLIB
#define KP_WITH_ZLIB 1
#endif
#if KP_WITH_ZLIB
#include <zlib.h>
#endif

/* LLVM's default levels. */
#define ZSTD_LEVEL 5
#define ZLIB_LEVEL 6

kpack_error_t kp_offload_is_zstd(const struct kp_source *body, bool *yes,
				 struct kpackx_error *why)
{
	uint8_t buf[KP_FRAME_HEADER_MAX];
	struct kp_frame_header header;
	struct kp_span head;

	KP_TRY(kp_source_head(body, 0, buf, sizeof(buf), &head, why));
	*yes = kp_frame_header_read(head, &header);
	return KPACK_SUCCESS;
}

kpack_error_t kp_offload_inflate_check(const struct kp_source *body, uint64_t header,
				       uint64_t inflated, struct kpackx_error *why)
{
	uint64_t ratio;
	bool zstd;

	KP_TRY(kp_offload_is_zstd(body, &zstd, why));
	ratio = zstd ? KP_ZSTD_RATIO_MAX : KP_ZLIB_RATIO_MAX;
	if (inflated < header || inflated > KP_OFFLOAD_INFLATED_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "inflated size %" PRIu64 ", possible are %" PRIu64
			       " to %" PRIu64,
			       inflated, header, KP_OFFLOAD_INFLATED_MAX);
	if ((inflated - header) / ratio > body->size)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "inflated size %" PRIu64 " cannot come out of %" PRIu64
			       " bytes of %s",
			       inflated, body->size, zstd ? "zstd" : "zlib");
	return KPACK_SUCCESS;
}

#if KP_WITH_ZLIB
/* Return the bytes to give to zlib at a time, because it counts in 32 bits. */
static uInt portion(size_t left)
{
	return left < INT32_MAX ? (uInt)left : INT32_MAX;
}

/* Z_OK: the stream ended, and SIZE bytes were decoded. */
static int zlib_run(z_stream *z, struct kp_span stored, uint8_t *out, size_t size)
{
	size_t in = 0, made = 0;
	uInt give, room;
	int code;

	do {
		give = portion(stored.size - in);
		room = portion(size - made);
		z->next_in = (Bytef *)stored.data + in;
		z->avail_in = give;
		z->next_out = out + made;
		z->avail_out = room;
		code = inflate(z, Z_NO_FLUSH);
		in += give - z->avail_in;
		made += room - z->avail_out;
	} while (code == Z_OK && (give != z->avail_in || room != z->avail_out));
	if (code == Z_STREAM_END)
		return made == size ? Z_OK : Z_DATA_ERROR;
	return code == Z_OK ? Z_BUF_ERROR : code;
}

static kpack_error_t zlib_decode(struct kp_span stored, uint8_t *out, size_t size,
				 struct kpackx_error *why)
{
	uint8_t none; /* zlib needs an output buffer even for 0 bytes */
	z_stream z = {0};
	int code;

	if (inflateInit(&z) != Z_OK)
		return kp_fail_memory(why, stored.size, "a zlib decoder");
	code = zlib_run(&z, stored, size ? out : &none, size);
	inflateEnd(&z);
	if (code == Z_MEM_ERROR)
		return kp_fail_memory(why, size, "a zlib decoder");
	if (code != Z_OK)
		return kp_fail(why, KPACK_ERROR_DECOMPRESSION_FAILED,
			       "%zu bytes are no zlib stream of %zu decoded bytes",
			       stored.size, size);
	return KPACK_SUCCESS;
}

static kpack_error_t zlib_encode(int level, struct kp_span body, uint8_t *out, size_t cap,
				 size_t *made, struct kpackx_error *why)
{
	uLong size = cap;

	if (compress2(out, &size, body.data, body.size, level) != Z_OK)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "zlib: cannot compress %zu bytes at level %d", body.size,
			       level);
	*made = size;
	return KPACK_SUCCESS;
}

static size_t zlib_bound(size_t size)
{
	return compressBound(size);
}
#else
static kpack_error_t without_zlib(struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
		       "compressed with zlib: built without zlib");
}

static kpack_error_t zlib_decode(struct kp_span stored, uint8_t *out, size_t size,
				 struct kpackx_error *why)
{
	(void)stored, (void)out, (void)size;
	return without_zlib(why);
}

static kpack_error_t zlib_encode(int level, struct kp_span body, uint8_t *out, size_t cap,
				 size_t *made, struct kpackx_error *why)
{
	(void)level, (void)body, (void)out, (void)cap, (void)made;
	return without_zlib(why);
}

static size_t zlib_bound(size_t size)
{
	return size;
}
#endif

kpack_error_t kp_offload_inflate(const struct kp_source *body, uint8_t *out, size_t size,
				 struct kpackx_error *why)
{
	struct kp_span span;
	kpack_error_t err;
	uint8_t *stored;
	bool zstd;

	KP_TRY(kp_offload_is_zstd(body, &zstd, why));
	KP_TRY(kp_source_load(body, UINT64_MAX, "a compressed offload binary", &stored,
			      why));
	span = (struct kp_span){stored, (size_t)body->size};
	err = zstd ? kp_zstd_decode(span, out, size, why)
		   : zlib_decode(span, out, size, why);
	free(stored);
	return err;
}

static kpack_error_t zstd_encode(int level, struct kp_span body, uint8_t *out, size_t cap,
				 size_t *made, struct kpackx_error *why)
{
	ZSTD_CCtx *ctx = ZSTD_createCCtx();
	size_t n;

	if (!ctx)
		return kp_fail_memory(why, body.size, "a zstd encoder");
	n = ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, level);
	if (!ZSTD_isError(n))
		n = ZSTD_compress2(ctx, out, cap, body.data, body.size);
	ZSTD_freeCCtx(ctx);
	*made = n;
	if (ZSTD_isError(n))
		return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY,
			       "zstd: compressing %zu bytes: %s", body.size,
			       ZSTD_getErrorName(n));
	return KPACK_SUCCESS;
}

kpack_error_t kp_offload_deflate(const struct kp_offload_form *form, struct kp_span body,
				 uint8_t **out, size_t *size, struct kpackx_error *why)
{
	bool zstd = form->method == KP_OFFLOAD_ZSTD;
	int level = form->level ? form->level : zstd ? ZSTD_LEVEL : ZLIB_LEVEL;
	size_t cap = zstd ? ZSTD_compressBound(body.size) : zlib_bound(body.size);
	uint8_t *buf = malloc(cap);
	kpack_error_t err;

	if (!buf)
		return kp_fail_memory(why, cap, "a compressed offload binary");
	err = zstd ? zstd_encode(level, body, buf, cap, size, why)
		   : zlib_encode(level, body, buf, cap, size, why);
	if (err)
		free(buf);
	else
		*out = buf;
	return err;
}
