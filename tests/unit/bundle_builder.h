/* SPDX-License-Identifier: MIT */
/* Growable byte buffers, and offload bundles made of them, for tests. */
#ifndef BUNDLE_BUILDER_H
#define BUNDLE_BUILDER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#if KP_WITH_ZLIB
#include <zlib.h>
#endif
#include "core/base/span.h"

struct bytes {
	uint8_t *data;
	size_t size, room;
};

static inline void put(struct bytes *b, const void *data, size_t size)
{
	if (!b->data || b->size + size > b->room) {
		b->room = 2 * (b->size + size) + 1;
		b->data = realloc(b->data, b->room);
	}
	if (!b->data)
		abort();
	if (size)
		memcpy(b->data + b->size, data, size);
	b->size += size;
}

static inline void put_number(struct bytes *b, uint64_t value, size_t size)
{
	uint8_t le[8];

	kp_put_le64(le, value);
	put(b, le, size);
}

static inline void put_zeros(struct bytes *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put_number(b, 0, 1);
}

static inline void put_padding(struct bytes *b, size_t align)
{
	put_zeros(b, (align - b->size % align) % align);
}

static inline void bytes_free(struct bytes *b)
{
	free(b->data);
	*b = (struct bytes){0};
}

struct entry {
	const char *id;
	const char *object;
};

static inline size_t round_up(size_t n, size_t align)
{
	return (n + align - 1) / align * align;
}

/* Append a bundle to B as clang-offload-bundler writes it. */
static inline void put_bundle(struct bytes *b, const struct entry *entries, size_t n,
			      size_t align)
{
	size_t start = b->size, pos = 32;

	put(b, "__CLANG_OFFLOAD_BUNDLE__", 24);
	put_number(b, n, 8);
	for (size_t i = 0; i < n; i++)
		pos += 24 + strlen(entries[i].id);
	for (size_t i = 0; i < n; i++) {
		pos = round_up(pos, align);
		put_number(b, pos, 8);
		put_number(b, strlen(entries[i].object), 8);
		put_number(b, strlen(entries[i].id), 8);
		put(b, entries[i].id, strlen(entries[i].id));
		pos += strlen(entries[i].object);
	}
	for (size_t i = 0; i < n; i++) {
		if (!*entries[i].object)
			continue;
		put_zeros(b, round_up(b->size - start, align) - (b->size - start));
		put(b, entries[i].object, strlen(entries[i].object));
	}
}

static inline struct bytes deflated(struct kp_span plain)
{
	struct bytes out = {0};
#if KP_WITH_ZLIB
	uLongf size = compressBound(plain.size);

	out.data = malloc(size);
	if (!out.data || compress(out.data, &size, plain.data, plain.size) != Z_OK)
		abort();
	out.size = size;
#else
	put(&out, plain.data, plain.size);
#endif
	return out;
}

static inline struct bytes zstd_frame(struct kp_span plain)
{
	struct bytes out = {0};

	out.size = ZSTD_compressBound(plain.size);
	out.data = malloc(out.size);
	if (!out.data)
		abort();
	out.size = ZSTD_compress(out.data, out.size, plain.data, plain.size, 3);
	return out;
}

/* Append a CCOB header with the given values. */
static inline void put_ccob_header(struct bytes *b, unsigned version, unsigned method,
				   uint64_t size, uint64_t decoded)
{
	put(b, "CCOB", 4);
	put_number(b, version, 2);
	put_number(b, method, 2);
	if (version > 1)
		put_number(b, size, version == 2 ? 4 : 8);
	put_number(b, decoded, version == 3 ? 8 : 4);
	put_number(b, 0, 8);
}

static inline size_t ccob_header_size(unsigned version)
{
	return version == 1 ? 20 : version == 2 ? 24 : 32;
}

/* Append PLAIN to B, compressed into a CCOB; method 0 is zlib, 1 is zstd. */
static inline void put_ccob(struct bytes *b, unsigned version, unsigned method,
			    struct kp_span plain)
{
	struct bytes data = method == 0 ? deflated(plain) : zstd_frame(plain);

	put_ccob_header(b, version, method, ccob_header_size(version) + data.size,
			plain.size);
	put(b, data.data, data.size);
	bytes_free(&data);
}

static inline struct kp_span bytes_span(const struct bytes *b)
{
	return (struct kp_span){b->data, b->size};
}

#endif
