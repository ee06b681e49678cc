/* SPDX-License-Identifier: MIT */
/*
 * Bounded runs of bytes: the range check, reading and writing little-endian fields, and taking
 * texts apart.
 */
#ifndef KP_CORE_BASE_SPAN_H
#define KP_CORE_BASE_SPAN_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The number of elements of the array A. */
#define KP_COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The order of two numbers for qsort and bsearch: negative, 0 or positive. */
#define KP_ORDER(a, b) (((a) > (b)) - ((a) < (b)))

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

/* Fields of any alignment; compilers make one load or store of each of these. */
static inline uint16_t kp_le16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return le16toh(v);
}

static inline uint32_t kp_le32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static inline uint64_t kp_le64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

/* A field of SIZE bytes, at most 8, in either byte order. */
static inline uint64_t kp_number(const uint8_t *p, unsigned size, bool big)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < size; i++)
		n = n << 8 | p[big ? i : size - 1 - i];
	return n;
}

static inline void kp_put_le32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void kp_put_le64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

/* Without a call of memcmp for few bytes, which most texts that are compared here have. */
static inline bool kp_span_eq(struct kp_span a, struct kp_span b)
{
	const uint8_t *p = a.data, *q = b.data;
	size_t n = a.size;

	if (n != b.size)
		return false;
	if (n > 16)
		return memcmp(p, q, n) == 0;
	if (n >= 8)
		return kp_le64(p) == kp_le64(q) &&
		       kp_le64(p + n - 8) == kp_le64(q + n - 8);
	if (n >= 4)
		return kp_le32(p) == kp_le32(q) &&
		       kp_le32(p + n - 4) == kp_le32(q + n - 4);
	while (n && p[n - 1] == q[n - 1])
		n--;
	return n == 0;
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

/* --- taking texts apart ------------------------------------------------------------------ */

static inline bool kp_span_begins(struct kp_span s, const char *text)
{
	return kp_span_starts(s, text, strlen(text));
}

/* Take TEXT off the beginning of *S; false: *S does not begin with it. */
static inline bool kp_span_take(struct kp_span *s, const char *text)
{
	if (!kp_span_begins(*s, text))
		return false;
	*s = kp_span_tail(*s, strlen(text));
	return true;
}

/* Take TEXT off the end of *S; false: *S does not end with it, or is nothing else. */
static inline bool kp_span_take_end(struct kp_span *s, const char *text)
{
	if (s->size <= strlen(text) || !kp_span_ends(*s, text))
		return false;
	s->size -= strlen(text);
	return true;
}

/* Whether TEXT is anywhere in S. */
static inline bool kp_span_has(struct kp_span s, const char *text)
{
	return s.size && memmem(s.data, s.size, text, strlen(text));
}

/* Set BEFORE and AFTER to what is around the first TEXT in S; false: it is not in S. */
static inline bool kp_span_split(struct kp_span s, const char *text,
				 struct kp_span *before, struct kp_span *after)
{
	const uint8_t *at = s.size ? memmem(s.data, s.size, text, strlen(text)) : NULL;

	if (!at)
		return false;
	*before = kp_span_head(s, (size_t)(at - s.data));
	*after = kp_span_tail(s, before->size + strlen(text));
	return true;
}

/* Take the next word off *REST, and the separator after it, any character of SEPARATORS. */
static inline struct kp_span kp_span_word(struct kp_span *rest, const char *separators)
{
	struct kp_span word = {rest->data, 0};

	while (word.size < rest->size &&
	       !(rest->data[word.size] && strchr(separators, rest->data[word.size])))
		word.size++;
	*rest = kp_span_tail(*rest, word.size + (word.size < rest->size));
	return word;
}

/* Whether S is one of the words of LIST, which blanks separate. */
static inline bool kp_span_is_one_of(struct kp_span s, const char *list)
{
	for (; *list; list += strcspn(list, " "), list += *list == ' ')
		if (s.size == strcspn(list, " ") && kp_span_starts(s, list, s.size))
			return true;
	return false;
}

#endif
