/* SPDX-License-Identifier: MIT */
#include "core/base/msgpack_read.h"
#include <msgpack.h> /* msgpack-c, the reference */
#include "tests/unit/unit.h"
#include <stdlib.h>
#include "core/base/bounds.h"

TEST(heads_that_count_are_refused_before_their_elements)
{
	/* the bytes after the head would satisfy any smaller count */
	static const uint8_t heads[] = {0xdd, 0xdf, 0xdb, 0xc6, 0xc9};
	uint8_t bytes[64] = {0};

	for (size_t i = 0; i < COUNT(heads); i++) {
		struct kp_mp c = kp_mp_over((struct kp_span){bytes, sizeof(bytes)});
		struct kp_mp_value v;

		memset(bytes + 1, 0xff, 4);
		bytes[0] = heads[i];
		assert_int_equal(kp_mp_peek(&c), KP_MP_BAD);
		assert_false(kp_mp_next(&c, &v));
		assert_int_equal(v.type, KP_MP_BAD);
	}
}

TEST(nesting_is_bounded)
{
	uint8_t bytes[KP_MSGPACK_DEPTH_MAX + 2];
	struct kp_mp deep = kp_mp_over((struct kp_span){bytes, sizeof(bytes)});
	struct kp_mp fits = kp_mp_over((struct kp_span){bytes + 1, sizeof(bytes) - 1});

	memset(bytes, 0x91, sizeof(bytes));
	bytes[sizeof(bytes) - 1] = 7;
	assert_false(kp_mp_skip(&deep));
	assert_true(kp_mp_skip(&fits));
}

/* --- compared with msgpack-c -------------------------------------------------------- */

static uint32_t seed;

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

static void pack_bytes(msgpack_packer *pk, int kind)
{
	static const uint32_t sizes[] = {0, 1, 31, 32, 255, 256, 65535, 65536};
	static const char bytes[65536];
	size_t n = draw(8) ? draw(40) : sizes[draw(COUNT(sizes))];

	if (kind == 0) {
		msgpack_pack_str(pk, n);
		msgpack_pack_str_body(pk, bytes, n);
	} else if (kind == 1) {
		msgpack_pack_bin(pk, n);
		msgpack_pack_bin_body(pk, bytes, n);
	} else {
		msgpack_pack_ext(pk, n, 5);
		msgpack_pack_ext_body(pk, bytes, n);
	}
}

static void pack_random(msgpack_packer *pk, int depth)
{
	uint64_t n = (uint64_t)draw(1 << 24) << 40 | (uint64_t)draw(1 << 24) << 16 |
		     draw(65536);
	uint32_t count = draw(12) ? draw(6) : draw(20);

	switch (draw(depth ? 11 : 9)) {
	case 0:
		msgpack_pack_nil(pk);
		return;
	case 1:
		draw(2) ? msgpack_pack_true(pk) : msgpack_pack_false(pk);
		return;
	case 2:
		msgpack_pack_uint64(pk, n >> draw(64));
		return;
	case 3:
		msgpack_pack_int64(pk, (int64_t)n >> draw(64));
		return;
	case 4:
		draw(2) ? msgpack_pack_double(pk, (double)n)
			: msgpack_pack_float(pk, (float)n);
		return;
	case 5: /* not the shortest encoding */
		draw(2) ? msgpack_pack_fix_int64(pk, (int64_t)n >> draw(64))
			: msgpack_pack_fix_uint32(pk, (uint32_t)n);
		return;
	case 6:
	case 7:
	case 8:
		pack_bytes(pk, (int)draw(3));
		return;
	case 9:
		msgpack_pack_array(pk, count);
		while (count--)
			pack_random(pk, depth - 1);
		return;
	default:
		msgpack_pack_map(pk, count);
		for (count *= 2; count--;)
			pack_random(pk, depth - 1);
		return;
	}
}

static void assert_bytes(const struct kp_mp_value *v, const void *data, size_t size)
{
	assert_int_equal(v->span.size, size);
	if (size) /* the unpacker points into the input */
		assert_ptr_equal(v->span.data, data);
}

/*
 * The calls for one type read what kp_mp_next has read from the cursor C into V.  A value of another
 * type is a fault at its beginning, which stays.
 */
static void assert_typed(struct kp_mp c, const struct kp_mp_value *v)
{
	static const enum kp_mp_type types[] = {KP_MP_STR, KP_MP_UINT, KP_MP_MAP,
						KP_MP_ARRAY};
	struct kp_mp at[] = {c, c, c, c};
	struct kp_span s = {0};
	uint32_t pairs = 0, items = 0;
	uint64_t n = 0;
	const bool reads[] = {kp_mp_str(&at[0], &s), kp_mp_uint(&at[1], &n),
			      kp_mp_map(&at[2], &pairs), kp_mp_array(&at[3], &items)};

	for (size_t i = 0; i < COUNT(types); i++) {
		assert_int_equal(reads[i], v->type == types[i]);
		if (reads[i])
			continue;
		assert_ptr_equal(at[i].pos, c.pos);
		assert_false(kp_mp_skip(&at[i]) || kp_mp_fault(&at[i], "second"));
		assert_string_not_equal(at[i].fault, "second");
	}
	if (v->type == KP_MP_STR) {
		assert_bytes(v, s.data, s.size);
		assert_ptr_equal(at[0].pos, s.data + s.size);
	} else if (v->type == KP_MP_UINT) {
		assert_int_equal(n, v->num);
		assert_true(kp_mp_skip(&c));
		assert_ptr_equal(at[1].pos, c.pos);
	} else if (v->type == KP_MP_MAP || v->type == KP_MP_ARRAY) {
		assert_int_equal(pairs + items, v->num);
	}
}

static void assert_same(struct kp_mp *c, const msgpack_object *o)
{
	enum kp_mp_type peeked = kp_mp_peek(c);
	struct kp_mp before = *c;
	struct kp_mp_value v;

	assert_true(kp_mp_next(c, &v));
	assert_int_equal(v.type, peeked);
	assert_typed(before, &v);
	switch (o->type) {
	case MSGPACK_OBJECT_NIL:
		assert_int_equal(v.type, KP_MP_NIL);
		return;
	case MSGPACK_OBJECT_BOOLEAN:
		assert_int_equal(v.type, KP_MP_BOOL);
		assert_int_equal(v.num, o->via.boolean);
		return;
	case MSGPACK_OBJECT_POSITIVE_INTEGER:
		assert_int_equal(v.type, KP_MP_UINT);
		assert_int_equal(v.num, o->via.u64);
		return;
	case MSGPACK_OBJECT_NEGATIVE_INTEGER:
		assert_int_equal(v.type, KP_MP_INT);
		assert_int_equal((int64_t)v.num, o->via.i64);
		return;
	case MSGPACK_OBJECT_FLOAT32:
	case MSGPACK_OBJECT_FLOAT64:
		assert_int_equal(v.type, KP_MP_FLOAT);
		assert_memory_equal(&v.real, &o->via.f64, sizeof(v.real));
		return;
	case MSGPACK_OBJECT_STR:
		assert_int_equal(v.type, KP_MP_STR);
		assert_bytes(&v, o->via.str.ptr, o->via.str.size);
		return;
	case MSGPACK_OBJECT_BIN:
		assert_int_equal(v.type, KP_MP_BIN);
		assert_bytes(&v, o->via.bin.ptr, o->via.bin.size);
		return;
	case MSGPACK_OBJECT_EXT: /* our span begins with the type byte */
		assert_int_equal(v.type, KP_MP_EXT);
		assert_bytes(&v, o->via.ext.ptr - 1, o->via.ext.size + 1);
		return;
	case MSGPACK_OBJECT_ARRAY:
		assert_int_equal(v.type, KP_MP_ARRAY);
		assert_int_equal(v.num, o->via.array.size);
		for (uint32_t i = 0; i < o->via.array.size; i++)
			assert_same(c, &o->via.array.ptr[i]);
		return;
	case MSGPACK_OBJECT_MAP:
		assert_int_equal(v.type, KP_MP_MAP);
		assert_int_equal(v.num, o->via.map.size);
		for (uint32_t i = 0; i < o->via.map.size; i++) {
			assert_same(c, &o->via.map.ptr[i].key);
			assert_same(c, &o->via.map.ptr[i].val);
		}
		return;
	}
	fail();
}

TEST(msgpack_c_reads_the_same)
{
	for (seed = 0; seed < 1500 * 7919u; seed += 7919) {
		uint32_t first = seed;
		msgpack_unpacked control;
		msgpack_sbuffer out;
		msgpack_packer pk;
		struct kp_mp c;
		size_t used = 0;

		msgpack_sbuffer_init(&out);
		msgpack_packer_init(&pk, &out, msgpack_sbuffer_write);
		pack_random(&pk, 5);
		msgpack_unpacked_init(&control);
		assert_int_equal(msgpack_unpack_next(&control, out.data, out.size, &used),
				 MSGPACK_UNPACK_SUCCESS);
		c = kp_mp_over((struct kp_span){(uint8_t *)out.data, out.size});
		assert_same(&c, &control.data);
		assert_int_equal(kp_mp_offset(&c), used);
		c = kp_mp_over((struct kp_span){(uint8_t *)out.data, out.size});
		assert_true(kp_mp_skip(&c));
		assert_int_equal(kp_mp_offset(&c), used);
		msgpack_unpacked_destroy(&control);
		msgpack_sbuffer_destroy(&out);
		seed = first;
	}
}

/*
 * msgpack-c and we accept the same random bytes, as long as they are not deeply nested.
 */
TEST(msgpack_c_refuses_the_same)
{
	uint8_t bytes[24];

	seed = 1;
	for (int i = 0; i < 50000; i++) {
		size_t size = 1 + draw(sizeof(bytes)), used = 0;
		struct kp_mp c = kp_mp_over((struct kp_span){bytes, size});
		msgpack_unpacked control;
		bool good;

		for (size_t k = 0; k < size; k++)
			do /* msgpack-c allocates what array 32 and map 32 claim */
				bytes[k] = (uint8_t)(draw(3) ? draw(256)
							     : 0x80 + draw(0x60));
			while (bytes[k] == 0xdd || bytes[k] == 0xdf);
		msgpack_unpacked_init(&control);
		good = msgpack_unpack_next(&control, (char *)bytes, size, &used) ==
		       MSGPACK_UNPACK_SUCCESS;
		assert_int_equal(kp_mp_skip(&c), good);
		if (good)
			assert_int_equal(kp_mp_offset(&c), used);
		msgpack_unpacked_destroy(&control);
	}
}
