/* SPDX-License-Identifier: MIT */
/*
 * Bounded runs of bytes: the range check, and reading and writing little-endian fields.
 */
#ifndef KP_CORE_BASE_SPAN_H
#define KP_CORE_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The number of elements of the array A. */
#define KP_COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The order of two numbers for qsort and bsearch: negative, 0 or positive. */
#define KP_ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* The bytewise order of two elements of an array of texts, for qsort and bsearch. */
static inline int kp_order_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct kp_span {
	const uint8_t *data;
	size_t size;
};

/* Whether LEN bytes at OFF lie inside SIZE bytes.  Subtracts, so that nothing wraps. */
static inline bool kp_range_ok(uint64_t size, uint64_t off, uint64_t len)
{
	return off <= size && len <= size - off;
}

static inline bool kp_span_sub(struct kp_span s, uint64_t off, uint64_t len,
			       struct kp_span *out)
{
	if (!kp_range_ok(s.size, off, len))
		return false;
	*out = (struct kp_span){s.data + off, (size_t)len};
	return true;
}

static inline struct kp_span kp_span_str(const char *s)
{
	return (struct kp_span){(const uint8_t *)s, strlen(s)};
}

static inline uint16_t kp_le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t kp_le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[3] << 24;
}

static inline uint64_t kp_le64(const uint8_t *p)
{
	return (uint64_t)kp_le32(p) | (uint64_t)kp_le32(p + 4) << 32;
}

/* As memcmp() == 0, without the call: most strings compared here have few bytes. */
static inline bool kp_bytes_eq(const uint8_t *a, const uint8_t *b, size_t n)
{
	if (n > 16)
		return memcmp(a, b, n) == 0;
	if (n >= 8)
		return kp_le64(a) == kp_le64(b) &&
		       kp_le64(a + n - 8) == kp_le64(b + n - 8);
	if (n >= 4)
		return kp_le32(a) == kp_le32(b) &&
		       kp_le32(a + n - 4) == kp_le32(b + n - 4);
	while (n && a[n - 1] == b[n - 1])
		n--;
	return n == 0;
}

static inline bool kp_span_eq(struct kp_span a, struct kp_span b)
{
	return a.size == b.size && kp_bytes_eq(a.data, b.data, a.size);
}

static inline bool kp_span_is(struct kp_span a, const char *text)
{
	return kp_span_eq(a, kp_span_str(text));
}

/* Bytewise order; a prefix of a text sorts before the text. */
static inline int kp_span_cmp(struct kp_span a, struct kp_span b)
{
	size_t n = a.size < b.size ? a.size : b.size;
	int c = n ? memcmp(a.data, b.data, n) : 0;

	return c ? c : KP_ORDER(a.size, b.size);
}

static inline bool kp_span_starts(struct kp_span s, const void *prefix, size_t size)
{
	return s.size >= size && memcmp(s.data, prefix, size) == 0;
}

static inline bool kp_span_ends(struct kp_span s, const char *end)
{
	size_t n = strlen(end);

	return s.size >= n && memcmp(s.data + s.size - n, end, n) == 0;
}

/* The first N bytes, and the bytes after the first N; N is at most the size. */
static inline struct kp_span kp_span_head(struct kp_span s, size_t n)
{
	return (struct kp_span){s.data, n};
}

static inline struct kp_span kp_span_tail(struct kp_span s, size_t n)
{
	/* an empty span may have a NULL address */
	return (struct kp_span){n ? s.data + n : s.data, s.size - n};
}

/* No loop: compilers make one store of these. */
static inline void kp_put_le32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)(v >> 16);
	p[3] = (uint8_t)(v >> 24);
}

static inline void kp_put_le64(uint8_t *p, uint64_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)(v >> 16);
	p[3] = (uint8_t)(v >> 24);
	p[4] = (uint8_t)(v >> 32);
	p[5] = (uint8_t)(v >> 40);
	p[6] = (uint8_t)(v >> 48);
	p[7] = (uint8_t)(v >> 56);
}

#endif
