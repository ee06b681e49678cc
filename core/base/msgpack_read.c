/* SPDX-License-Identifier: MIT */
#include "msgpack_read.h"

#include "bounds.h"

static const uint8_t FIXMAP = 0x80, FIXARRAY = 0x90, FIXSTR = 0xa0, NIL = 0xc0;
static const uint8_t BIN8 = 0xc4, UINT8 = 0xcc, UINT64 = 0xcf, STR8 = 0xd9,
		     NEGATIVE_FIXINT = 0xe0;

/* How to read the heads 0xc0..0xdf: type of value, bytes of the number after the head. */
struct head {
	enum kp_mp_type type;
	uint8_t number; /* bytes of the big-endian length, count or integer */
	uint8_t fixed;  /* bytes of a value with a fixed length in its head */
	bool is_signed;
};

static const struct head heads[32] = {
	{KP_MP_NIL, 0, 0, false},   {KP_MP_BAD, 0, 0, false},   /* c0 c1 */
	{KP_MP_BOOL, 0, 0, false},  {KP_MP_BOOL, 0, 0, false},  /* c2 c3 */
	{KP_MP_BIN, 1, 0, false},   {KP_MP_BIN, 2, 0, false},   /* c4 c5 */
	{KP_MP_BIN, 4, 0, false},   {KP_MP_EXT, 1, 0, false},   /* c6 c7 */
	{KP_MP_EXT, 2, 0, false},   {KP_MP_EXT, 4, 0, false},   /* c8 c9 */
	{KP_MP_FLOAT, 4, 0, false}, {KP_MP_FLOAT, 8, 0, false}, /* ca cb */
	{KP_MP_UINT, 1, 0, false},  {KP_MP_UINT, 2, 0, false},  /* cc cd */
	{KP_MP_UINT, 4, 0, false},  {KP_MP_UINT, 8, 0, false},  /* ce cf */
	{KP_MP_INT, 1, 0, true},    {KP_MP_INT, 2, 0, true},    /* d0 d1 */
	{KP_MP_INT, 4, 0, true},    {KP_MP_INT, 8, 0, true},    /* d2 d3 */
	{KP_MP_EXT, 0, 1, false},   {KP_MP_EXT, 0, 2, false},   /* d4 d5 */
	{KP_MP_EXT, 0, 4, false},   {KP_MP_EXT, 0, 8, false},   /* d6 d7 */
	{KP_MP_EXT, 0, 16, false},  {KP_MP_STR, 1, 0, false},   /* d8 d9 */
	{KP_MP_STR, 2, 0, false},   {KP_MP_STR, 4, 0, false},   /* da db */
	{KP_MP_ARRAY, 2, 0, false}, {KP_MP_ARRAY, 4, 0, false}, /* dc dd */
	{KP_MP_MAP, 2, 0, false},   {KP_MP_MAP, 4, 0, false},   /* de df */
};

bool kp_mp_fault(struct kp_mp *c, const char *text)
{
	if (!c->fault)
		c->fault = text;
	return false;
}

static size_t bytes_left(const struct kp_mp *c)
{
	return (size_t)(c->end - c->pos);
}

static bool take_raw(struct kp_mp *c, size_t n, const uint8_t **p)
{
	if (n > bytes_left(c))
		return kp_mp_fault(c, "value runs past the end");
	*p = c->pos;
	c->pos += n;
	return true;
}

static bool take_bytes(struct kp_mp *c, struct kp_mp_value *v, enum kp_mp_type type,
		       size_t size)
{
	v->type = type;
	v->span.size = size;
	return take_raw(c, size, &v->span.data);
}

/* Every element takes at least one byte, a pair at least two. */
static bool take_count(struct kp_mp *c, struct kp_mp_value *v, enum kp_mp_type type,
		       uint64_t count)
{
	if (count > bytes_left(c) / (type == KP_MP_MAP ? 2 : 1))
		return kp_mp_fault(c, "count exceeds the bytes that remain");
	v->type = type;
	v->num = count;
	return true;
}

static bool big_endian(struct kp_mp *c, size_t size, uint64_t *out)
{
	const uint8_t *p;
	uint64_t n = 0;

	if (!take_raw(c, size, &p))
		return false;
	for (size_t i = 0; i < size; i++)
		n = n << 8 | p[i];
	*out = n;
	return true;
}

static void set_integer(struct kp_mp_value *v, uint64_t n, size_t size, bool is_signed)
{
	if (is_signed && size < 8 && n >> (8 * size - 1))
		n |= UINT64_MAX << (8 * size);
	v->num = n;
	v->type = is_signed && n >> 63 ? KP_MP_INT : KP_MP_UINT;
}

/* Values whose head is 0xc0..0xdf. */
static bool next_long_value(struct kp_mp *c, uint8_t head, struct kp_mp_value *v)
{
	const struct head *h = &heads[head - NIL];
	uint64_t n = h->fixed;
	uint32_t bits;
	float single;

	if (h->number && !big_endian(c, h->number, &n))
		return false;
	switch (h->type) {
	case KP_MP_STR:
	case KP_MP_BIN:
		return take_bytes(c, v, h->type, (size_t)n);
	case KP_MP_EXT: /* plus the type byte */
		return take_bytes(c, v, h->type, (size_t)n + 1);
	case KP_MP_ARRAY:
	case KP_MP_MAP:
		return take_count(c, v, h->type, n);
	case KP_MP_UINT:
	case KP_MP_INT:
		set_integer(v, n, h->number, h->is_signed);
		return true;
	case KP_MP_FLOAT:
		v->type = KP_MP_FLOAT;
		bits = (uint32_t)n;
		memcpy(&single, &bits, sizeof(single));
		if (h->number == 4)
			v->real = (double)single;
		else
			memcpy(&v->real, &n, sizeof(v->real));
		return true;
	case KP_MP_BOOL:
		v->num = head & 1;
		v->type = KP_MP_BOOL;
		return true;
	case KP_MP_NIL:
		v->type = KP_MP_NIL;
		return true;
	default:
		return kp_mp_fault(c, "byte 0xc1 begins no value");
	}
}

static bool next_value(struct kp_mp *c, struct kp_mp_value *v)
{
	uint8_t head;

	if (c->fault)
		return false;
	if (c->pos == c->end)
		return kp_mp_fault(c, "value missing at the end");
	head = *c->pos++;
	if (head < FIXMAP || head >= NEGATIVE_FIXINT) {
		set_integer(v, head, 1, true);
		return true;
	}
	if (head < FIXARRAY)
		return take_count(c, v, KP_MP_MAP, head & 0x0f);
	if (head < FIXSTR)
		return take_count(c, v, KP_MP_ARRAY, head & 0x0f);
	if (head < NIL)
		return take_bytes(c, v, KP_MP_STR, head & 0x1f);
	return next_long_value(c, head, v);
}

bool kp_mp_next(struct kp_mp *c, struct kp_mp_value *v)
{
	bool ok = next_value(c, v);

	if (!ok)
		v->type = KP_MP_BAD;
	return ok;
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

/* Skip such a scalar; false: it is none, and the cursor was not moved. */
static bool skip_scalar(struct kp_mp *c)
{
	size_t size = scalar_size(c);

	c->pos += size;
	return size;
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

	if (skip_scalar(c))
		return true;
	remaining[depth] = 1;
	while (depth >= outer) {
		if (remaining[depth] == 0) {
			depth--;
			continue;
		}
		remaining[depth]--;
		if (skip_scalar(c))
			continue;
		if (!next_value(c, &v))
			return false;
		if ((v.type != KP_MP_ARRAY && v.type != KP_MP_MAP) || v.num == 0)
			continue;
		if (depth == KP_MSGPACK_DEPTH_MAX)
			return kp_mp_fault(c, "nested deeper than 32 levels");
		remaining[++depth] = v.type == KP_MP_MAP ? 2 * v.num : v.num;
	}
	return true;
}

bool kp_mp_skip(struct kp_mp *c)
{
	return kp_mp_skip_nested(c, 0);
}

static bool expect_type(struct kp_mp *c, enum kp_mp_type type, struct kp_mp_value *v,
			const char *fault)
{
	const uint8_t *at = c->pos;

	if (!next_value(c, v))
		return false;
	if (v->type == type)
		return true;
	c->pos = at;
	return kp_mp_fault(c, fault);
}

bool kp_mp_map_long(struct kp_mp *c, uint32_t *count)
{
	struct kp_mp_value v;

	if (!expect_type(c, KP_MP_MAP, &v, "not a map"))
		return false;
	*count = (uint32_t)v.num;
	return true;
}

bool kp_mp_array(struct kp_mp *c, uint32_t *count)
{
	struct kp_mp_value v;

	if (!expect_type(c, KP_MP_ARRAY, &v, "not an array"))
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
