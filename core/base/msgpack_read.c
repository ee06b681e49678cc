/* SPDX-License-Identifier: MIT */
#include "msgpack_read.h"

#include "bounds.h"

/*
 * The first byte of a value is its head, which states the type, and sometimes the value itself:
 *
 *	00..7f  the integer 0..127             90..9f  an array of 0..15 elements
 *	e0..ff  the integer -32..-1            a0..bf  a string of 0..31 bytes
 *	80..8f  a map of 0..15 pairs           c0..df  as the table below says
 *
 * Numbers after a head are big-endian.  Then follow the bytes of a string, of binary data, or of
 * an extension, which are one more than its length, for its type; or the elements of an array, or
 * a key and a value for each pair of a map.
 */
static const uint8_t FIXMAP = 0x80, FIXARRAY = 0x90, FIXSTR = 0xa0, NIL = 0xc0;
static const uint8_t BIN8 = 0xc4, UINT8 = 0xcc, UINT64 = 0xcf, STR8 = 0xd9,
		     NEGATIVE_FIXINT = 0xe0;

static const struct {
	enum kp_mp_type type; /* INT: signed, which may be a UINT */
	uint8_t number; /* bytes of the length, count, integer or float after the head */
	uint8_t fixed;  /* the length that the head stands for, if there is no number */
} heads[32] = {
	{KP_MP_NIL, 0, 0},   {KP_MP_BAD, 0, 0},   /* c0 c1 */
	{KP_MP_BOOL, 0, 0},  {KP_MP_BOOL, 0, 1},  /* c2 c3 */
	{KP_MP_BIN, 1, 0},   {KP_MP_BIN, 2, 0},   /* c4 c5 */
	{KP_MP_BIN, 4, 0},   {KP_MP_EXT, 1, 0},   /* c6 c7 */
	{KP_MP_EXT, 2, 0},   {KP_MP_EXT, 4, 0},   /* c8 c9 */
	{KP_MP_FLOAT, 4, 0}, {KP_MP_FLOAT, 8, 0}, /* ca cb */
	{KP_MP_UINT, 1, 0},  {KP_MP_UINT, 2, 0},  /* cc cd */
	{KP_MP_UINT, 4, 0},  {KP_MP_UINT, 8, 0},  /* ce cf */
	{KP_MP_INT, 1, 0},   {KP_MP_INT, 2, 0},   /* d0 d1 */
	{KP_MP_INT, 4, 0},   {KP_MP_INT, 8, 0},   /* d2 d3 */
	{KP_MP_EXT, 0, 1},   {KP_MP_EXT, 0, 2},   /* d4 d5 */
	{KP_MP_EXT, 0, 4},   {KP_MP_EXT, 0, 8},   /* d6 d7 */
	{KP_MP_EXT, 0, 16},  {KP_MP_STR, 1, 0},   /* d8 d9 */
	{KP_MP_STR, 2, 0},   {KP_MP_STR, 4, 0},   /* da db */
	{KP_MP_ARRAY, 2, 0}, {KP_MP_ARRAY, 4, 0}, /* dc dd */
	{KP_MP_MAP, 2, 0},   {KP_MP_MAP, 4, 0},   /* de df */
};

bool kp_mp_fault(struct kp_mp *c, const char *text)
{
	if (!c->fault)
		c->fault = text;
	return false;
}

bool kp_mp_fault_at_end(struct kp_mp *c, const char *text, uint64_t missing)
{
	c->missing = missing;
	return kp_mp_fault(c, text);
}

static size_t bytes_left(const struct kp_mp *c)
{
	return (size_t)(c->end - c->pos);
}

bool kp_mp_next(struct kp_mp *c, struct kp_mp_value *v)
{
	enum kp_mp_type type;
	uint64_t n; /* the value, its length, or its count */
	uint8_t head, size = 0;
	uint32_t bits;
	float single;

	v->type = KP_MP_BAD;
	if (c->fault)
		return false;
	if (c->pos == c->end)
		return kp_mp_fault_at_end(c, "value missing at the end", 1);
	head = *c->pos++;
	n = head;
	if (head < FIXMAP) {
		type = KP_MP_UINT;
	} else if (head < FIXSTR) {
		type = head < FIXARRAY ? KP_MP_MAP : KP_MP_ARRAY;
		n = head & 0x0f;
	} else if (head < NIL) {
		type = KP_MP_STR;
		n = head & 0x1f;
	} else if (head >= NEGATIVE_FIXINT) {
		type = KP_MP_INT;
		size = 1;
	} else {
		type = heads[head - NIL].type;
		size = heads[head - NIL].number;
		n = heads[head - NIL].fixed;
		if (size > bytes_left(c))
			return kp_mp_fault_at_end(c, "value runs past the end", 1);
		for (const uint8_t *end = c->pos + size; c->pos < end; c->pos++)
			n = n << 8 | *c->pos;
	}
	switch (type) {
	case KP_MP_EXT:
	case KP_MP_STR:
	case KP_MP_BIN:
		n += type == KP_MP_EXT;
		if (n > bytes_left(c))
			return kp_mp_fault_at_end(c, "value runs past the end",
						  n - bytes_left(c));
		v->span = (struct kp_span){c->pos, (size_t)n};
		c->pos += n;
		break;
	case KP_MP_ARRAY:
	case KP_MP_MAP:
		/* each element takes a byte, so that a caller may allocate for all of them */
		if (n > bytes_left(c) / (type == KP_MP_MAP ? 2 : 1))
			return kp_mp_fault_at_end(c,
						  "count exceeds the bytes that remain",
						  n - bytes_left(c) / 2);
		v->num = n;
		break;
	case KP_MP_INT:
		if (size < 8 && n >> (8 * size - 1))
			n |= UINT64_MAX << (8 * size);
		/* writers differ in the type that they give a number which is not negative */
		type = n >> 63 ? KP_MP_INT : KP_MP_UINT;
		v->num = n;
		break;
	case KP_MP_FLOAT:
		bits = (uint32_t)n;
		memcpy(&single, &bits, sizeof(single));
		memcpy(&v->real, &n, sizeof(v->real));
		if (size == 4)
			v->real = (double)single;
		break;
	case KP_MP_BAD:
		return kp_mp_fault(c, "byte 0xc1 begins no value");
	default:
		v->num = n;
	}
	v->type = type;
	return true;
}

/*
 * The size of a scalar that is in its first two bytes, as of nearly every value of a
 * table; 0: it is another value, or a fault.
 */
static size_t scalar_size(const struct kp_mp *c)
{
	size_t left = bytes_left(c), size;
	uint8_t head;

	if (c->fault || left < 2)
		return 0;
	head = *c->pos;
	if (head < FIXMAP || head >= NEGATIVE_FIXINT)
		size = 1;
	else if (head >= FIXSTR && head < NIL)
		size = 1 + (size_t)(head & 0x1f);
	else if (head == BIN8 || head == STR8)
		size = 2 + (size_t)c->pos[1];
	else if (head >= UINT8 && head <= UINT64)
		size = 1 + ((size_t)1 << (head - UINT8));
	else
		return 0;
	return size <= left ? size : 0;
}

enum kp_mp_type kp_mp_peek_long(const struct kp_mp *c)
{
	struct kp_mp copy = *c;
	struct kp_mp_value v;

	if (scalar_size(c))
		return heads[*c->pos - NIL].type;
	/* only its bytes show the sign of an integer of a signed type */
	return kp_mp_next(&copy, &v) ? v.type : KP_MP_BAD;
}

bool kp_mp_skip_nested(struct kp_mp *c, int outer)
{
	/* remaining[d]: values still to skip at depth d */
	uint64_t remaining[KP_MSGPACK_DEPTH_MAX + 1];
	int depth = outer;
	struct kp_mp_value v;
	size_t size;

	remaining[depth] = 1;
	while (depth >= outer) {
		if (remaining[depth] == 0) {
			depth--;
			continue;
		}
		remaining[depth]--;
		size = scalar_size(c);
		c->pos += size;
		if (size)
			continue;
		if (!kp_mp_next(c, &v))
			return false;
		if ((v.type != KP_MP_ARRAY && v.type != KP_MP_MAP) || v.num == 0)
			continue;
		if (depth == KP_MSGPACK_DEPTH_MAX)
			return kp_mp_fault(c, "nested deeper than 32 levels");
		remaining[++depth] = v.type == KP_MP_MAP ? 2 * v.num : v.num;
	}
	return true;
}

/* Read a value of TYPE; of another one, the cursor stays before it, for the message's offset. */
static bool expect_type(struct kp_mp *c, enum kp_mp_type type, struct kp_mp_value *v,
			const char *fault)
{
	const uint8_t *at = c->pos;

	if (!kp_mp_next(c, v))
		return false;
	if (v->type == type)
		return true;
	c->pos = at;
	return kp_mp_fault(c, fault);
}

bool kp_mp_count(struct kp_mp *c, enum kp_mp_type type, uint32_t *count)
{
	struct kp_mp_value v;

	if (!expect_type(c, type, &v, type == KP_MP_MAP ? "not a map" : "not an array"))
		return false;
	*count = (uint32_t)v.num;
	return true;
}

bool kp_mp_str_long(struct kp_mp *c, struct kp_span *s)
{
	struct kp_mp_value v;

	if (!expect_type(c, KP_MP_STR, &v, "not a string"))
		return false;
	*s = v.span;
	return true;
}

bool kp_mp_uint_long(struct kp_mp *c, uint64_t *n)
{
	struct kp_mp_value v;

	if (!expect_type(c, KP_MP_UINT, &v, "not a non-negative integer"))
		return false;
	*n = v.num;
	return true;
}

kpack_error_t kp_mp_fail(const struct kp_mp *c, const char *object,
			 struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_MSGPACK_PARSE_FAILED, "%s: byte %zu of %zu: %s",
		       object, kp_mp_offset(c), (size_t)(c->end - c->start),
		       c->fault ? c->fault : "no fault");
}
