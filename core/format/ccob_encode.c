/* SPDX-License-Identifier: MIT */
/*
 * Writing compressed bundles as LLVM does: ZSTD_compress2 or zlib's compress2 over the
 * whole payload; the only parameters are the level and long-distance matching.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>
#include "core/base/alloc.h"
#include "core/archive/frames.h"
#include "ccob.h"

#if KP_WITH_ZLIB
#include <zlib.h>
#endif

/*
 * A wrong level is noticed in the first blocks, so that a try costs only these blocks:
 * the first HEAD bytes are compared, and zstd needs room for two more blocks of 128 KiB
 * to write them.
 */
#define HEAD ((size_t)64 << 10)
#define HEAD_ROOM (HEAD + ((size_t)256 << 10))

/* Bytes of payload for the first block alone, the cheapest try: zstd_begins. */
#define FIRST ((size_t)256 << 10)

/*
 * The search compresses only the beginning of a larger payload.  Payloads are mapped, and
 * all of one that compresses well would be in memory before HEAD bytes come out.
 */
#define LARGE ((size_t)32 << 20)
#define LARGE_PART (LARGE / 2)

/*
 * The levels of each method, the compilers' default first.  zstd's levels above 19 take up to 800 MB
 * of tables for a try.  zstd's are tried with and without long-distance matching.
 */
static const int levels[][20] = {
	[KP_CCOB_ZLIB] = {6, 9, 1, 2, 3, 4, 5, 7, 8},
	[KP_CCOB_ZSTD] = {3, 5, 1, 2, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
			  19},
};

static bool is_built_in(unsigned method)
{
	return method == KP_CCOB_ZSTD || (KP_WITH_ZLIB && method == KP_CCOB_ZLIB);
}

static kpack_error_t zstd_open(const struct kp_ccob_form *form, size_t size,
			       ZSTD_CCtx **out, struct kpackx_error *why)
{
	ZSTD_CCtx *ctx = ZSTD_createCCtx();
	size_t n;

	if (!ctx)
		return kp_fail_memory(why, size, "a zstd encoder");
	n = ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, form->level);
	if (!ZSTD_isError(n))
		n = ZSTD_CCtx_setParameter(ctx, ZSTD_c_enableLongDistanceMatching,
					   form->long_range);
	if (ZSTD_isError(n)) {
		ZSTD_freeCCtx(ctx);
		return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY, "zstd: %s",
			       ZSTD_getErrorName(n));
	}
	*out = ctx;
	return KPACK_SUCCESS;
}

/*
 * Find out from the beginning of PAYLOAD whether the data for FORM may begin with
 * HEAD, the first bytes of it.
 * The first block does not depend on what follows it: compress the beginning of a stream
 * that has the payload's size.  All levels take some 0.5 s, whatever the payload is.
 */
static kpack_error_t zstd_begins(const struct kp_ccob_form *form, struct kp_span payload,
				 struct kp_span head, bool *begins,
				 struct kpackx_error *why)
{
	uint8_t out[FIRST];
	ZSTD_inBuffer from = {payload.data, FIRST, 0};
	ZSTD_outBuffer to = {out, sizeof(out), 0};
	struct kp_frame_header h;
	ZSTD_CCtx *ctx = NULL;
	size_t n;

	*begins = true;
	if (payload.size < 2 * FIRST)
		return KPACK_SUCCESS;
	/* of the frame that HEAD begins, the part that ends with the first block */
	if (kp_frame_header_read(head, &h) && !h.skippable && head.size >= h.size + 3u) {
		const uint8_t *block = head.data + h.size;
		size_t end =
			h.size + 3u + ((block[0] | block[1] << 8 | block[2] << 16) >> 3);

		head.size = end < head.size ? end : head.size;
	}
	KP_TRY(zstd_open(form, payload.size, &ctx, why));
	n = ZSTD_CCtx_setPledgedSrcSize(ctx, payload.size);
	if (!ZSTD_isError(n))
		n = ZSTD_compressStream2(ctx, &to, &from, ZSTD_e_flush);
	ZSTD_freeCCtx(ctx);
	if (ZSTD_isError(n))
		return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY, "zstd: %s",
			       ZSTD_getErrorName(n));
	*begins = to.pos >= head.size && memcmp(out, head.data, head.size) == 0;
	return KPACK_SUCCESS;
}

/*
 * Compress PAYLOAD into OUT.  If CAP bytes are too few, *MADE is SIZE_MAX and OUT
 * is filled nearly to its end.
 */
static kpack_error_t encode(const struct kp_ccob_form *form, struct kp_span payload,
			    uint8_t *out, size_t cap, size_t *made,
			    struct kpackx_error *why)
{
	ZSTD_CCtx *ctx = NULL;
#if KP_WITH_ZLIB
	z_stream z = {0};
	size_t in = 0;
	int code = Z_OK;
#endif

	*made = 0;
	if (form->method == KP_CCOB_ZSTD) {
		KP_TRY(zstd_open(form, payload.size, &ctx, why));
		*made = ZSTD_compress2(ctx, out, cap, payload.data, payload.size);
		ZSTD_freeCCtx(ctx);
		if (ZSTD_getErrorCode(*made) == ZSTD_error_dstSize_tooSmall)
			*made = SIZE_MAX;
		else if (ZSTD_isError(*made))
			return kp_fail(why, KPACK_ERROR_OUT_OF_MEMORY,
				       "zstd: compressing %zu bytes: %s", payload.size,
				       ZSTD_getErrorName(*made));
		return KPACK_SUCCESS;
	}
#if KP_WITH_ZLIB
	switch (deflateInit(&z, form->level)) {
	case Z_OK:
		break;
	case Z_STREAM_ERROR:
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "zlib: cannot compress %zu bytes at level %d",
			       payload.size, form->level);
	default:
		return kp_fail_memory(why, payload.size, "a zlib encoder");
	}
	while (code == Z_OK && *made < cap) {
		/* zlib counts in 32 bits */
		size_t left = payload.size - in;
		uInt give = left < INT32_MAX ? (uInt)left : INT32_MAX;
		uInt room = cap - *made < INT32_MAX ? (uInt)(cap - *made) : INT32_MAX;

		z.next_in = (Bytef *)payload.data + in;
		z.avail_in = give;
		z.next_out = out + *made;
		z.avail_out = room;
		code = deflate(&z, give == left ? Z_FINISH : Z_NO_FLUSH);
		in += give - z.avail_in;
		*made += room - z.avail_out;
	}
	deflateEnd(&z);
	if (code != Z_STREAM_END)
		*made = SIZE_MAX;
#endif
	return KPACK_SUCCESS;
}

/* ---- forms ---- */

kpack_error_t kp_ccob_form_read(const struct kp_source *src, const struct kp_container *c,
				struct kp_ccob_form *out, struct kpackx_error *why)
{
	uint8_t b[KP_CCOB_HEADER_MAX];
	uint64_t size;

	KP_TRY(kp_source_read(src, c->offset, b, 8, why));
	*out = (struct kp_ccob_form){.version = kp_le16(b + 4), .method = kp_le16(b + 6)};
	size = kp_ccob_header_size(out->version);
	if (!kp_ccob_form_ok(out) || size > c->size)
		return kp_fail(why, KPACK_ERROR_IO_ERROR,
			       "ccob at offset %" PRIu64 ": changed while it was read",
			       c->offset);
	KP_TRY(kp_source_read(src, c->offset, b, size, why));
	out->hash = kp_le64(b + size - 8);
	return KPACK_SUCCESS;
}

/* --- the hash: MD5 (RFC 1321), of which LLVM stores the first 8 bytes ---------------- */

enum { BLOCK = 64 };

/* The first 32 bits of the fraction of |sin(i + 1)|. */
static const uint32_t sines[64] = {
	0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a,
	0xa8304613, 0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be,
	0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340,
	0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
	0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8,
	0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c,
	0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
	0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
	0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92,
	0xffeff47d, 0x85845dd1, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1,
	0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

/* Bits to rotate by: four per round, used in turn. */
static const uint8_t turns[4][4] = {
	{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

static void take_block(uint32_t state[4], const uint8_t *block)
{
	static const uint8_t step[4] = {1, 5, 3, 7}, first[4] = {0, 1, 5, 0};
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];

	/* a step waits for the one before it: what needs only the block comes first */
#pragma GCC unroll 64
	for (unsigned i = 0; i < 64; i++) {
		unsigned round = i / 16, word = (first[round] + step[round] * i) % 16;
		uint32_t known = a + sines[i] + kp_le32(block + 4 * (size_t)word);
		uint32_t mixed = round == 0   ? (b & c) | (~b & d)
				 : round == 1 ? (b & d) + (c & ~d)
				 : round == 2 ? b ^ c ^ d
					      : c ^ (b | ~d);
		uint32_t sum = known + mixed;
		unsigned turn = turns[round][i % 4];

		a = d;
		d = c;
		c = b;
		b += sum << turn | sum >> (32 - turn);
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
}

uint64_t kp_ccob_hash(struct kp_span payload)
{
	uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
	size_t rest = payload.size % BLOCK, whole = payload.size - rest;
	size_t n = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;
	uint8_t end[2 * BLOCK] = {0};

	for (size_t i = 0; i < whole; i += BLOCK)
		take_block(state, payload.data + i);
	/* the last bytes, a one bit, zeros, and the length in bits: one or two blocks */
	if (rest)
		memcpy(end, payload.data + whole, rest);
	end[rest] = 0x80;
	kp_put_le64(end + n - 8, payload.size * 8);
	for (size_t i = 0; i < n; i += BLOCK)
		take_block(state, end + i);
	return (uint64_t)state[1] << 32 | state[0];
}

/* --- compression ------------------------------------------------------------------------ */

kpack_error_t kp_llvm_compress(unsigned method, int level, bool long_range,
			       struct kp_span payload, size_t room, uint8_t **out,
			       size_t *size, struct kpackx_error *why)
{
	const struct kp_ccob_form form = {
		.method = method, .level = level, .long_range = long_range};
	KP_AUTO_FREE uint8_t *buf = NULL;
	size_t cap = ZSTD_compressBound(payload.size);

	if (!is_built_in(method))
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "method %u: built without it", method);
#if KP_WITH_ZLIB
	if (method == KP_CCOB_ZLIB)
		cap = compressBound(payload.size);
#endif
	buf = malloc(room + cap);
	if (!buf)
		return kp_fail_memory(why, cap, "compressed data");
	KP_TRY(encode(&form, payload, buf + room, cap, size, why));
	*size += room;
	*out = buf;
	buf = NULL;
	return KPACK_SUCCESS;
}

kpack_error_t kp_ccob_encode(const struct kp_ccob_form *form, struct kp_span payload,
			     uint8_t **out, size_t *size, struct kpackx_error *why)
{
	size_t header = (size_t)kp_ccob_header_size(form->version);
	bool zstd = form->method == KP_CCOB_ZSTD;
	int level = form->level ? form->level : levels[zstd][0];
	uint8_t *b;

	KP_TRY(kp_llvm_compress(form->method, level,
				form->level ? form->long_range : zstd, payload, header,
				&b, size, why));
	if ((form->version < 3 && payload.size > UINT32_MAX) ||
	    (form->version == 2 && *size > UINT32_MAX)) {
		free(b);
		return kp_fail(why, KPACK_ERROR_NOT_IMPLEMENTED,
			       "%zu bytes of %zu decoded ones are too many for a CCOB of "
			       "version %u",
			       *size, payload.size, form->version);
	}
	memcpy(b, "CCOB", 4);
	kp_put_le32(b + 4, form->version | form->method << 16);
	if (form->version == 3) {
		kp_put_le64(b + 8, *size);
		kp_put_le64(b + 16, payload.size);
	} else {
		kp_put_le32(b + 8, (uint32_t)(form->version == 2 ? *size : payload.size));
		kp_put_le32(b + header - 12, (uint32_t)payload.size);
	}
	kp_put_le64(b + header - 8, form->hash);
	*out = b;
	return KPACK_SUCCESS;
}

/* ---- finding the level ---- */

/* A search for the level. */
struct search {
	struct kp_source data; /* the compressed bytes to reproduce */
	struct kp_span payload;
	struct kp_span head; /* the first bytes of DATA */
	uint8_t *out;        /* HEAD_ROOM bytes for a try */
	struct kp_ccob_search *state;
};

/*
 * *SAME becomes true if FORM's level gives the same bytes: all of them while the budget
 * suffices, then the first ones, so that a wrong level is not likely.
 */
static kpack_error_t try_level(const struct search *s, const struct kp_ccob_form *form,
			       bool *same, struct kpackx_error *why)
{
	bool large = s->payload.size > LARGE;
	struct kp_span payload = s->payload;
	KP_AUTO_FREE uint8_t *whole = NULL;
	struct kp_source again;
	size_t made, n = s->head.size;

	*same = true;
	if (form->method == KP_CCOB_ZSTD)
		KP_TRY(zstd_begins(form, payload, s->head, same, why));
	if (!*same || (large && form->method == KP_CCOB_ZSTD))
		return KPACK_SUCCESS;
	memset(s->out, 0, HEAD);
	if (large)
		payload.size = LARGE_PART;
	KP_TRY(encode(form, payload, s->out, large ? HEAD : HEAD_ROOM, &made, why));
	/* the end of a part differs from the same place in the whole, but not its first half */
	if (large && made != SIZE_MAX && made / 2 < n)
		n = made / 2;
	*same = memcmp(s->out, s->head.data, n) == 0;
	if (!*same || large)
		return KPACK_SUCCESS;
	if (made == SIZE_MAX) {
		if (s->payload.size > s->state->budget)
			return KPACK_SUCCESS;
		s->state->budget -= s->payload.size;
		KP_TRY(kp_llvm_compress(form->method, form->level, form->long_range,
					s->payload, 0, &whole, &made, why));
	}
	*same = false;
	if (made != s->data.size)
		return KPACK_SUCCESS;
	again = kp_source_memory(whole ? whole : s->out, made);
	return kp_source_compare(&s->data, &again, same, why);
}

/* The form that is the likeliest without a try: that of the container before. */
static void guess_level(const struct kp_ccob_form *like, struct kp_ccob_form *form)
{
	bool known = like->level && like->method == form->method;

	form->level = known ? like->level : levels[form->method][0];
	form->long_range = known ? like->long_range : form->method == KP_CCOB_ZSTD;
}

/* Try the likeliest level, then the default, then all levels, as long as STATE allows it. */
kpack_error_t kp_ccob_find_level(const struct kp_source *src,
				 const struct kp_container *c, struct kp_payload *payload,
				 struct kp_ccob_search *state, struct kp_ccob_form *form,
				 struct kpackx_error *why)
{
	uint64_t header_size = kp_ccob_header_size(form->version);
	KP_AUTO_FREE uint8_t *head = NULL, *out = NULL;
	unsigned ranges = form->method == KP_CCOB_ZSTD ? 2 : 1;
	struct search s = {.state = state};
	bool same = false;

	form->level = 0;
	form->long_range = false;
	if (!is_built_in(form->method) || c->size < header_size ||
	    !kp_source_sub(src, c->offset + header_size, c->size - header_size, &s.data))
		return KPACK_SUCCESS;
	guess_level(&state->like, form);
	if (state->failures >= KP_CCOB_FAILURES_MAX)
		return KPACK_SUCCESS;
	KP_TRY(kp_payload_map(payload, &s.payload, why));
	head = malloc(HEAD);
	s.out = out = malloc(HEAD_ROOM);
	if (!head || !out)
		return kp_fail_memory(why, HEAD + HEAD_ROOM, "a compressed bundle");
	s.head = (struct kp_span){head, s.data.size < HEAD ? (size_t)s.data.size : HEAD};
	KP_TRY(kp_source_read(&s.data, 0, head, s.head.size, why));
	KP_TRY(try_level(&s, form, &same, why));
	for (size_t i = 0; levels[form->method][i / ranges] && !same; i++) {
		if (i == ranges && !state->searches)
			break;
		form->level = levels[form->method][i / ranges];
		form->long_range = ranges > 1 && i % 2 == 0;
		KP_TRY(try_level(&s, form, &same, why));
		if (i >= ranges && same)
			state->searches--;
	}
	if (same) {
		state->like = *form;
		state->failures = 0;
	} else {
		state->searches = 0;
		state->failures++;
		guess_level(&state->like, form);
	}
	return KPACK_SUCCESS;
}
