/* SPDX-License-Identifier: MIT */
/*
 * Archives for tests, made without any of core's code.  The TOC is written as text and
 * packed by msgpack-c, so every field, its order and every false value is visible in the
 * test:
 *
 *   {'toc': {'lib/x.so#0': {'gfx1100': {'ordinal': 0, 'original_size': 4}}}}
 *
 * 'text' (~ is a NUL), x'00ff' bin, 12, -3, 1.5, true, false, nil, [..], {..};
 * @4 is {'ordinal': 4}.
 */
#ifndef ARCHIVE_BYTES_H
#define ARCHIVE_BYTES_H

#include <msgpack.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

/* --- MessagePack from text ---------------------------------------------------------- */

static inline void mp_abort(const char *at)
{
	fprintf(stderr, "archive_bytes: cannot read: %.60s\n", at);
	abort();
}

static inline const char *mp_space(const char *p)
{
	return p + strspn(p, " \t\n,:");
}

static inline const char *mp_pack_value(msgpack_packer *pk, const char *p);

/* Pack values up to CLOSE and store their number in *COUNT. */
static inline const char *mp_pack_values(msgpack_packer *pk, const char *p, char close,
					 size_t *count)
{
	for (p = mp_space(p); *p != close; p = mp_space(p)) {
		if (!*p)
			mp_abort("end of text");
		p = mp_pack_value(pk, p);
		++*count;
	}
	return p + 1;
}

static inline const char *mp_pack_container(msgpack_packer *pk, const char *p)
{
	bool map = *p == '{';
	msgpack_sbuffer body;
	msgpack_packer inner;
	size_t n = 0;

	msgpack_sbuffer_init(&body);
	msgpack_packer_init(&inner, &body, msgpack_sbuffer_write);
	p = mp_pack_values(&inner, p + 1, map ? '}' : ']', &n);
	if (map)
		msgpack_pack_map(pk, n / 2);
	else
		msgpack_pack_array(pk, n);
	pk->callback(pk->data, body.size ? body.data : "", body.size);
	msgpack_sbuffer_destroy(&body);
	return p;
}

static inline const char *mp_pack_text(msgpack_packer *pk, const char *p)
{
	size_t n = strcspn(p + 1, "'");
	char *copy = malloc(n + 1);

	if (!copy)
		abort();
	for (size_t i = 0; i < n; i++)
		copy[i] = p[1 + i];
	for (size_t i = 0; i < n; i++)
		if (copy[i] == '~')
			copy[i] = 0;
	msgpack_pack_str(pk, n);
	msgpack_pack_str_body(pk, copy, n);
	free(copy);
	return p + 1 + n + 1;
}

static inline const char *mp_pack_bin(msgpack_packer *pk, const char *p)
{
	size_t n = strcspn(p + 2, "'") / 2;

	msgpack_pack_bin(pk, n);
	for (size_t i = 0; i < n; i++) {
		char hex[3] = {p[2 + 2 * i], p[3 + 2 * i], 0};
		uint8_t byte = (uint8_t)strtoul(hex, NULL, 16);
		msgpack_pack_bin_body(pk, &byte, 1);
	}
	return p + 2 + 2 * n + 1;
}

static inline const char *mp_pack_number(msgpack_packer *pk, const char *p)
{
	size_t n = strspn(p, "-0123456789.");
	char *end;

	if (n == 0)
		mp_abort(p);
	if (memchr(p, '.', n))
		msgpack_pack_double(pk, strtod(p, &end));
	else if (*p == '-')
		msgpack_pack_int64(pk, strtoll(p, &end, 10));
	else
		msgpack_pack_uint64(pk, strtoull(p, &end, 10));
	return p + n;
}

static inline const char *mp_pack_value(msgpack_packer *pk, const char *p)
{
	p = mp_space(p);
	if (*p == '{' || *p == '[')
		return mp_pack_container(pk, p);
	if (*p == '\'')
		return mp_pack_text(pk, p);
	if (strncmp(p, "x'", 2) == 0)
		return mp_pack_bin(pk, p);
	if (*p == '@') {
		msgpack_pack_map(pk, 1);
		mp_pack_text(pk, "'ordinal'");
		return mp_pack_number(pk, p + 1);
	}
	if (strncmp(p, "nil", 3) == 0)
		return msgpack_pack_nil(pk), p + 3;
	if (strncmp(p, "true", 4) == 0)
		return msgpack_pack_true(pk), p + 4;
	if (strncmp(p, "false", 5) == 0)
		return msgpack_pack_false(pk), p + 5;
	return mp_pack_number(pk, p);
}

/* --- the file ----------------------------------------------------------------------- */

struct ab {
	uint8_t *bytes;
	size_t size;
	uint32_t frames;
};

static inline void ab_put(struct ab *a, const void *data, size_t size)
{
	a->bytes = realloc(a->bytes, a->size + size + 1);
	if (!a->bytes)
		abort();
	if (size)
		memcpy(a->bytes + a->size, data, size);
	a->size += size;
}

/* N as SIZE bytes, little-endian. */
static inline void ab_set_le(uint8_t *p, uint64_t n, size_t size)
{
	for (size_t i = 0; i < size; i++)
		p[i] = (uint8_t)(n >> (8 * i));
}

static inline void ab_put32(struct ab *a, uint32_t n)
{
	uint8_t word[4];

	ab_set_le(word, n, 4);
	ab_put(a, word, 4);
}

/* The header, then zeros up to offset BLOB. */
static inline struct ab ab_new(size_t blob)
{
	static const uint8_t zeros[64];
	struct ab a = {0};

	ab_put(&a, "KPAK\1\0\0\0\0\0\0\0\0\0\0\0", 16);
	ab_put(&a, zeros, blob - 16);
	return a;
}

/* An archive of scheme zstd-per-kernel: the blob is at 64, its frame count is still 0. */
static inline struct ab ab_new_zstd(void)
{
	struct ab a = ab_new(64);

	ab_put32(&a, 0);
	return a;
}

static inline void ab_free(struct ab *a)
{
	free(a->bytes);
	*a = (struct ab){0};
}

/* Append SIZE bytes compressed as one frame, without a length word. */
static inline size_t ab_put_frame(struct ab *a, const void *data, size_t size)
{
	size_t cap = ZSTD_compressBound(size), n;
	void *frame = malloc(cap);

	if (!frame)
		abort();
	n = ZSTD_compress(frame, cap, data, size, 3);
	ab_put(a, frame, n);
	free(frame);
	return n;
}

/*
 * Append a frame with a checksum and a window of 2^LOG bytes; UNKNOWN: its header does not
 * state the size.
 */
static inline void ab_put_window(struct ab *a, const void *data, size_t size, int log,
				 bool unknown)
{
	size_t cap = ZSTD_compressBound(size), n;
	ZSTD_CCtx *z = ZSTD_createCCtx();
	void *frame = malloc(cap);

	ZSTD_CCtx_setParameter(z, ZSTD_c_windowLog, log);
	ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
	ZSTD_CCtx_setParameter(z, ZSTD_c_contentSizeFlag, !unknown);
	n = ZSTD_compress2(z, frame, cap, data, size);
	if (ZSTD_isError(n))
		abort();
	ab_put(a, frame, n);
	ZSTD_freeCCtx(z);
	free(frame);
}

/* Append a frame of raw blocks with a window of 2^LOG bytes, which does not state the size. */
static inline void ab_put_wide(struct ab *a, const uint8_t *data, size_t size, int log)
{
	enum { BLOCK = 100000 };

	ab_put(a, "\x28\xb5\x2f\xfd", 5);
	ab_put(a, &(uint8_t){(uint8_t)((log - 10) << 3)}, 1);
	for (size_t at = 0; at < size; at += BLOCK) {
		uint32_t n = size - at < BLOCK ? (uint32_t)(size - at) : BLOCK;

		ab_put32(a, n << 3 | (at + n == size));
		a->size--; /* a raw block's header has three bytes */
		ab_put(a, data + at, n);
	}
}

/* Append stored bytes after a length word; returns the ordinal. */
static inline uint32_t ab_stored(struct ab *a, const void *data, size_t size)
{
	ab_put32(a, (uint32_t)size);
	ab_put(a, data, size);
	ab_set_le(a->bytes + 64, ++a->frames, 4);
	return a->frames - 1;
}

static inline uint32_t ab_frame(struct ab *a, const void *data, size_t size)
{
	struct ab one = {0};
	uint32_t ordinal;

	ab_put_frame(&one, data, size);
	ordinal = ab_stored(a, one.bytes, one.size);
	ab_free(&one);
	return ordinal;
}

/*
 * A seekable entry: frames of CHUNK bytes, then the seek table, with 12 bytes per row if
 * CHECKSUMS is set.
 */
static inline struct ab ab_seekable(const void *data, size_t size, size_t chunk,
				    bool checksums)
{
	size_t n = size ? (size + chunk - 1) / chunk : 1, row = checksums ? 12 : 8;
	struct ab out = {0}, table = {0};

	ab_put32(&table, 0x184d2a5e);
	ab_put32(&table, (uint32_t)(n * row + 9));
	for (size_t i = 0; i < n; i++) {
		size_t len = size - i * chunk < chunk ? size - i * chunk : chunk;

		ab_put32(&table, (uint32_t)ab_put_frame(
					 &out, (const uint8_t *)data + i * chunk, len));
		ab_put32(&table, (uint32_t)len);
		if (checksums)
			ab_put32(&table,
				 (uint32_t)XXH64((const uint8_t *)data + i * chunk, len,
						 0));
	}
	ab_put32(&table, (uint32_t)n);
	ab_put(&table, checksums ? "\x80" : "", 1);
	ab_put32(&table, 0x8f92eab1);
	ab_put(&out, table.bytes, table.size);
	ab_free(&table);
	return out;
}

/* Pack TEXT as the TOC at the end and set its offset in the header. */
static inline void ab_toc_text(struct ab *a, const char *text)
{
	msgpack_sbuffer out;
	msgpack_packer pk;
	const char *end;

	msgpack_sbuffer_init(&out);
	msgpack_packer_init(&pk, &out, msgpack_sbuffer_write);
	end = mp_pack_value(&pk, text);
	if (*mp_space(end))
		mp_abort(end);
	ab_set_le(a->bytes + 8, a->size, 8);
	ab_put(a, out.data, out.size);
	msgpack_sbuffer_destroy(&out);
}

__attribute__((format(printf, 2, 3))) static inline void ab_toc(struct ab *a,
								const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	ab_toc_text(a, text);
	free(text);
}

/* The bytes in hex, for x'..'; the caller frees the text. */
static inline char *ab_hex(const void *data, size_t size)
{
	char *text = malloc(2 * size + 1);

	if (!text)
		abort();
	text[0] = 0;
	for (size_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", ((const uint8_t *)data)[i]);
	return text;
}

static inline char *ab_xxh3(const void *data, size_t size)
{
	XXH128_canonical_t hash;

	XXH128_canonicalFromHash(&hash, XXH3_128bits(data, size));
	return ab_hex(hash.digest, sizeof(hash.digest));
}

/* The blob's frame index as hex, from walking the frames. */
static inline char *ab_frame_index(const struct ab *a)
{
	size_t at = 4, n = a->frames;
	uint8_t *index = malloc(8 * (n + 1));
	char *hex;

	if (!index)
		abort();
	for (size_t i = 0; i < n; i++) {
		ab_set_le(index + 8 * i, at, 8);
		const uint8_t *word = a->bytes + 64 + at;

		at += 4 +
		      (word[0] | word[1] << 8 | word[2] << 16 | (uint32_t)word[3] << 24);
	}
	ab_set_le(index + 8 * n, at, 8);
	hex = ab_hex(index, 8 * (n + 1));
	free(index);
	return hex;
}

/* Moderately compressible bytes, the same for equal seeds. */
static inline uint8_t *ab_data(size_t size, uint32_t seed)
{
	uint8_t *data = malloc(size + 1);

	if (!data)
		abort();
	for (size_t i = 0; i < size; i++) {
		seed = seed * 1664525 + 1013904223;
		data[i] = (seed >> 24) & 1 ? (uint8_t)(seed >> 28) : (uint8_t)(i / 64);
	}
	return data;
}

#endif
