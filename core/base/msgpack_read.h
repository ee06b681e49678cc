/* SPDX-License-Identifier: MIT */
/*
 * A bounded MessagePack cursor.  It reads forward over borrowed bytes and allocates
 * nothing.  It is sticky: after a fault every call fails, so a sequence of reads may be
 * checked once.  Every count is compared with the remaining bytes before it is used.
 *
 * Format: the MessagePack specification (github.com/msgpack/msgpack, spec.md).
 */
#ifndef KP_CORE_BASE_MSGPACK_READ_H
#define KP_CORE_BASE_MSGPACK_READ_H

#include "errors.h"
#include "span.h"

enum kp_mp_type {
	KP_MP_NIL,
	KP_MP_BOOL,
	KP_MP_UINT, /* any integer >= 0, however it is encoded */
	KP_MP_INT,  /* an integer < 0 */
	KP_MP_FLOAT,
	KP_MP_STR,
	KP_MP_BIN,
	KP_MP_ARRAY,
	KP_MP_MAP,
	KP_MP_EXT,
	KP_MP_BAD, /* no value: end of the bytes, or a fault */
};

struct kp_mp {
	const uint8_t *start; /* for offsets in messages */
	const uint8_t *pos;
	const uint8_t *end;
	const char *fault; /* static text of the first fault, or NULL */
	uint64_t missing;  /* if the fault is their end (kp_mp_fault_at_end); or 0 */
};

/* The head of one value.  Reading a map or array consumes only its head. */
struct kp_mp_value {
	enum kp_mp_type type;
	uint64_t num; /* UINT, BOOL: value; INT: two's complement; ARRAY, MAP: count */
	double real;  /* FLOAT */
	struct kp_span span; /* STR, BIN, EXT: the bytes */
};

static inline struct kp_mp kp_mp_over(struct kp_span s)
{
	/* an empty span may have a NULL address */
	return (struct kp_mp){s.data, s.data, s.size ? s.data + s.size : s.data, NULL, 0};
}

/*
 * The string at the cursor, if its length is in one byte after the head, as of keys and paths
 * of a table; NULL data: there is no such string, or it runs past the end.
 */
static inline struct kp_span kp_mp_str8(const struct kp_mp *c)
{
	size_t left = (size_t)(c->end - c->pos);

	if (c->fault || left < 2 || *c->pos != 0xd9 || c->pos[1] > left - 2)
		return (struct kp_span){NULL, 0};
	return (struct kp_span){c->pos + 2, c->pos[1]};
}

/* The part of kp_mp_peek for heads from 0xc0 to 0xdf. */
enum kp_mp_type kp_mp_peek_long(const struct kp_mp *c);

/* Type of the next value; consumes nothing. */
static inline enum kp_mp_type kp_mp_peek(const struct kp_mp *c)
{
	uint8_t head;

	if (c->fault || c->pos == c->end)
		return KP_MP_BAD;
	head = *c->pos;
	if (head < 0x80)
		return KP_MP_UINT;
	if (head >= 0xe0)
		return KP_MP_INT;
	if (head >= 0xc0)
		return kp_mp_str8(c).data ? KP_MP_STR : kp_mp_peek_long(c);
	return head < 0x90 ? KP_MP_MAP : head < 0xa0 ? KP_MP_ARRAY : KP_MP_STR;
}

/* Read the next head; false on a fault (type BAD). */
bool kp_mp_next(struct kp_mp *c, struct kp_mp_value *v);

/*
 * Skip one whole value with the values nested in it.  It is inside OUTER maps and arrays, which
 * count as depth: the innermost value may be KP_MSGPACK_DEPTH_MAX deep.
 */
bool kp_mp_skip_nested(struct kp_mp *c, int outer);

static inline bool kp_mp_skip(struct kp_mp *c)
{
	return kp_mp_skip_nested(c, 0);
}

/* Read a value of the type in the name, or the head of TYPE; one of another type is a fault. */
bool kp_mp_count(struct kp_mp *c, enum kp_mp_type type, uint32_t *count);
bool kp_mp_str_long(struct kp_mp *c, struct kp_span *s);
bool kp_mp_uint_long(struct kp_mp *c, uint64_t *n);

/* Nearly every string of a table has its length in the head, or in the byte after it. */
static inline bool kp_mp_str(struct kp_mp *c, struct kp_span *s)
{
	size_t left = (size_t)(c->end - c->pos), n;

	if (c->fault || left == 0)
		return kp_mp_str_long(c, s);
	n = *c->pos & 0x1f;
	if ((*c->pos & 0xe0) == 0xa0 && n < left)
		*s = (struct kp_span){c->pos + 1, n};
	else
		*s = kp_mp_str8(c);
	if (!s->data)
		return kp_mp_str_long(c, s);
	c->pos = s->data + s->size;
	return true;
}

/* Modes of files have two bytes after the head. */
static inline bool kp_mp_uint(struct kp_mp *c, uint64_t *n)
{
	if (c->fault || c->end - c->pos < 3 || *c->pos != 0xcd)
		return kp_mp_uint_long(c, n);
	*n = (uint64_t)c->pos[1] << 8 | c->pos[2];
	c->pos += 3;
	return true;
}

/* The map of an entry has few pairs: their number is in the head. */
static inline bool kp_mp_map(struct kp_mp *c, uint32_t *count)
{
	size_t left = (size_t)(c->end - c->pos);

	if (c->fault || left == 0 || (*c->pos & 0xf0) != 0x80 ||
	    2 * (size_t)(*c->pos & 0x0f) >= left)
		return kp_mp_count(c, KP_MP_MAP, count);
	*count = *c->pos++ & 0x0f;
	return true;
}

static inline bool kp_mp_array(struct kp_mp *c, uint32_t *count)
{
	return kp_mp_count(c, KP_MP_ARRAY, count);
}

/* Set the cursor's fault, if it has none yet; returns false. */
bool kp_mp_fault(struct kp_mp *c, const char *text);
/* The same, where a value began for which MISSING bytes more are needed, at least. */
bool kp_mp_fault_at_end(struct kp_mp *c, const char *text, uint64_t missing);

/* Offset of the cursor from its start. */
static inline size_t kp_mp_offset(const struct kp_mp *c)
{
	return (size_t)(c->pos - c->start);
}

/* Fail with MSGPACK_PARSE_FAILED and the cursor's fault and offset. */
kpack_error_t kp_mp_fail(const struct kp_mp *c, const char *object,
			 struct kpackx_error *why);

#endif
