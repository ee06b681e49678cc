/* SPDX-License-Identifier: MIT */
#include "core/format/object.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include "core/format/nest.h"

/* A buffer to append to; alignment is relative to its start. */
struct bytes {
	uint8_t data[8192];
	size_t size;
};

static void put(struct bytes *b, const void *data, size_t size)
{
	assert_true(size <= sizeof(b->data) - b->size);
	memcpy(b->data + b->size, data, size);
	b->size += size;
}

static void put_byte(struct bytes *b, unsigned byte)
{
	uint8_t one = (uint8_t)byte;

	put(b, &one, 1);
}

static void put_varint(struct bytes *b, uint64_t n)
{
	for (; n > 0x7f; n >>= 7)
		put_byte(b, 0x80 | (unsigned)(n & 0x7f));
	put_byte(b, (unsigned)n);
}

static void pad(struct bytes *b, size_t to)
{
	while (b->size % to)
		put_byte(b, 0xcb);
}

/* A table: the offsets of the items in WIDTH bytes each, then the items. */
static void put_table(struct bytes *b, const char *const *items, size_t n, unsigned width)
{
	uint64_t offset = 0;

	put_varint(b, n);
	pad(b, width);
	for (size_t i = 0; i < n; i++) {
		uint8_t le[8];

		kp_put_le64(le, offset);
		put(b, le, width);
		offset += strlen(items[i]);
	}
	for (size_t i = 0; i < n; i++)
		put(b, items[i], strlen(items[i]));
}

static void put_section(struct bytes *b, unsigned id, size_t alignment,
			const struct bytes *payload)
{
	put_byte(b, id | (alignment > 1 ? 0x80 : 0));
	put_varint(b, payload->size);
	if (alignment > 1) {
		put_varint(b, alignment);
		pad(b, alignment);
	}
	put(b, payload->data, payload->size);
}

static void put_header(struct bytes *b, unsigned major, unsigned minor, unsigned tag)
{
	b->size = 0;
	put(b, "\x7fTileIR", 8);
	put_byte(b, major);
	put_byte(b, minor);
	put_byte(b, tag & 0xff);
	put_byte(b, tag >> 8);
}

/* The strings that every module of this test has. */
enum { ADD, MUL, HELPER, SM_100, SM_120, DEFAULT, OCCUPANCY, CGA, TMA, STRINGS };
static const char *const strings[STRINGS] = {
	"add_Kt1_Si32", "mul_Kt1_Si32", "helper",         "sm_100",    "sm_120",
	"default",      "occupancy",    "num_cta_in_cga", "allow_tma",
};
static const char *const types[] = {"\x10", "\x03", "\x0d"};

static void put_function(struct bytes *b, unsigned name, unsigned flags)
{
	put_varint(b, name);
	put_varint(b, 0);
	put_byte(b, flags);
	put_varint(b, 1);
}

static void put_body(struct bytes *b, size_t size)
{
	put_varint(b, size);
	for (size_t i = 0; i < size; i++)
		put_byte(b, 0);
}

/* Hints for a target: N pairs of a key and an integer value. */
static void put_target(struct bytes *b, unsigned target, unsigned n, ...)
{
	va_list ap;

	put_varint(b, target);
	put_byte(b, 0x0a);
	put_varint(b, n);
	va_start(ap, n);
	for (unsigned i = 0; i < n; i++) {
		put_varint(b, va_arg(ap, unsigned));
		put_byte(b, 1);
		put_varint(b, 1);
		put_varint(b, va_arg(ap, unsigned));
	}
	va_end(ap);
}

/* Complete the module around the section FUNCTIONS. */
static void finish(struct bytes *b, const struct bytes *functions)
{
	struct bytes section = {.size = 0};

	put_section(b, 2, 8, functions);
	put_table(&section, types, COUNT(types), 4);
	put_section(b, 5, 4, &section);
	section.size = 0;
	put_table(&section, strings, STRINGS, 4);
	put_section(b, 1, 4, &section);
	put_byte(b, 0);
}

static void make_two_kernels(struct bytes *b, unsigned minor)
{
	struct bytes functions = {.size = 0};

	put_varint(&functions, 3);
	put_function(&functions, HELPER, 1);
	put_body(&functions, 300);
	put_function(&functions, ADD, 6);
	put_byte(&functions, 0x0b);
	put_varint(&functions, 1);
	put_target(&functions, SM_100, 2, OCCUPANCY, 4, CGA, 200);
	put_body(&functions, 0);
	put_function(&functions, MUL, 2);
	put_body(&functions, 5);
	put_header(b, 13, minor, 0);
	finish(b, &functions);
}

static kpack_error_t describe(const struct bytes *b, struct kp_object *out,
			      struct kpackx_error *why)
{
	struct kp_source src = kp_source_memory(b->data, b->size);

	return kp_object_describe(&src, out, why);
}

TEST(test_kernels)
{
	struct kp_object o;
	struct bytes b;

	for (unsigned minor = 1; minor <= 4; minor++) {
		char version[8];

		snprintf(version, sizeof(version), "13.%u", minor);
		make_two_kernels(&b, minor);
		assert_int_equal(describe(&b, &o, NULL), KPACK_SUCCESS);
		assert_string_equal(o.format->name, "tileir");
		assert_string_equal(o.type, "tileirbc");
		assert_string_equal(o.arch, "sm_100");
		assert_int_equal(o.n_kernels, 2);
		assert_string_equal(o.kernels[0].name, "add_Kt1_Si32");
		assert_string_equal(o.kernels[1].name, "mul_Kt1_Si32");
		assert_int_equal(o.kernels[1].vgprs, KP_NOT_STATED);
		assert_string_equal(kp_pairs_find(&o.facts, "version"), version);
		assert_string_equal(kp_pairs_find(&o.facts, "functions"), "3");
		assert_string_equal(kp_pairs_find(&o.facts, "hints add_Kt1_Si32"),
				    "sm_100 occupancy=4 num_cta_in_cga=200");
		kp_object_fini(&o);
	}
}

/*
 * Since 13.3 a "default" target may be added; an object with several other targets has no
 * arch.
 */
TEST(test_targets)
{
	struct bytes b, functions;
	struct kp_object o;

	for (unsigned second = SM_100; second <= DEFAULT; second++) {
		functions.size = 0;
		put_varint(&functions, 1);
		put_function(&functions, ADD, 6);
		put_byte(&functions, 0x0b);
		put_varint(&functions, 2);
		put_target(&functions, DEFAULT, 0);
		put_target(&functions, second, 1, OCCUPANCY, 1);
		put_body(&functions, 1);
		put_header(&b, 13, 3, 0);
		finish(&b, &functions);
		assert_int_equal(describe(&b, &o, NULL), KPACK_SUCCESS);
		assert_string_equal(o.arch, second == DEFAULT ? "" : strings[second]);
		kp_object_fini(&o);
	}
	functions.size = 0;
	put_varint(&functions, 1);
	put_function(&functions, ADD, 6);
	put_byte(&functions, 0x0b);
	put_varint(&functions, 3);
	put_target(&functions, SM_100, 0);
	put_target(&functions, SM_120, 0);
	put_varint(&functions, DEFAULT);
	put_byte(&functions, 0x0a);
	put_varint(&functions, 1);
	put_varint(&functions, TMA);
	put(&functions, "\x03\x01", 2); /* the value true */
	put_body(&functions, 1);
	put_header(&b, 13, 4, 1);
	finish(&b, &functions);
	assert_int_equal(describe(&b, &o, NULL), KPACK_SUCCESS);
	assert_string_equal(o.arch, "");
	assert_string_equal(kp_pairs_find(&o.facts, "tag"), "1");
	assert_string_equal(kp_pairs_find(&o.facts, "hints add_Kt1_Si32"),
			    "sm_100; sm_120; default allow_tma=1");
	kp_object_fini(&o);
}

/* Newer bytecode is recognised, but its contents are not described. */
TEST(test_versions)
{
	static const struct {
		unsigned major, minor;
	} unknown[] = {{13, 0}, {13, 5}, {14, 1}, {0, 0}};
	struct kp_object o;
	struct bytes b;

	for (size_t i = 0; i < COUNT(unknown); i++) {
		make_two_kernels(&b, 1);
		b.data[8] = (uint8_t)unknown[i].major;
		b.data[9] = (uint8_t)unknown[i].minor;
		assert_int_equal(describe(&b, &o, NULL), KPACK_SUCCESS);
		assert_string_equal(o.type, "tileirbc");
		assert_string_equal(o.arch, "");
		assert_int_equal(o.n_kernels, 0);
		assert_string_equal(kp_pairs_find(&o.facts, "not read"),
				    "kernels: only bytecode 13.1 to 13.4 is known");
		kp_object_fini(&o);
	}
}

/* The module's end comes from the module itself; sections may be in any position. */
TEST(test_container)
{
	struct kp_containers list;
	struct kp_source src;
	struct bytes b, one;

	make_two_kernels(&one, 2);
	b = one;
	pad(&b, 1);
	memset(b.data + b.size, 0, 40);
	b.size += 40;
	put(&b, one.data, one.size);
	src = kp_source_memory(b.data, b.size);
	assert_int_equal(kp_nest_scan(&src, NULL, NULL, &list, NULL), KPACK_SUCCESS);
	assert_int_equal(list.count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(list.items[i].size, one.size);
		assert_int_equal(list.items[i].offset, i * (one.size + 40));
		assert_int_equal(list.items[i].n_images, 1);
		assert_string_equal(list.images[i].arch, "sm_100");
		assert_null(list.images[i].id);
	}
	kp_containers_fini(&list);
}

/* Unaligned sections, in another order, with the optional sections. */
TEST(test_sections)
{
	struct bytes b, section = {.size = 0};
	struct kp_object o;

	for (unsigned minor = 2; minor <= 3; minor++) {
		static const char *const constants[] = {"abc"};

		put_header(&b, 13, minor, 0);
		section.size = 0;
		put_table(&section, strings, STRINGS, 4);
		put_section(&b, 1, 1, &section);
		section.size = 0;
		put_table(&section, constants, 1, 8);
		put_section(&b, 4, 64, &section);
		section.size = 0;
		put_varint(&section, 1);
		put(&section, "\x02\x00\x00\x10\x00\x01", minor < 3 ? 4 : 6);
		put_section(&b, 6, 1, &section);
		section.size = 0;
		put_varint(&section, 1);
		put_function(&section, MUL, 2);
		put_body(&section, 0);
		put_section(&b, 2, 1, &section);
		section.size = 0;
		put_section(&b, 3, 2, &section);
		put_table(&section, types, COUNT(types), 4);
		put_section(&b, 5, 1, &section);
		put_byte(&b, 0);
		assert_int_equal(describe(&b, &o, NULL), KPACK_SUCCESS);
		assert_int_equal(o.n_kernels, 1);
		assert_string_equal(o.arch, "");
		assert_string_equal(kp_pairs_find(&o.facts, "globals"), "1");
		kp_object_fini(&o);
	}
}

TEST(test_empty)
{
	struct bytes b, functions = {.size = 0};
	struct kp_object o;

	put_varint(&functions, 0);
	put_header(&b, 13, 1, 0);
	finish(&b, &functions);
	assert_int_equal(describe(&b, &o, NULL), KPACK_SUCCESS);
	assert_int_equal(o.n_kernels, 0);
	kp_object_fini(&o);
}

static void check_refused(const struct bytes *b, const char *want)
{
	struct kpackx_error why = {0};
	struct kp_object o;

	assert_int_equal(describe(b, &o, &why), KPACK_ERROR_INVALID_FORMAT);
	if (strncmp(why.text, want, strlen(want)) != 0)
		fail_msg("\"%s\", not \"%s\"", why.text, want);
	assert_int_equal(o.n_kernels, 0);
}

/*
 * A module with one function is refused; FUNCTION has the bytes after the function count.
 */
static void refused_function(const void *function, size_t size, const char *want)
{
	struct bytes b, functions = {.size = 0};

	put_varint(&functions, 1);
	put(&functions, function, size);
	put_header(&b, 13, 3, 0);
	finish(&b, &functions);
	check_refused(&b, want);
}

TEST(test_functions_refused)
{
	refused_function("\x09", 1, "function 0: offset 17: string 9 of 9");
	refused_function("\x00\x03", 2, "function 0: offset 18: type 3 of 3");
	refused_function("\x00\x00\x08", 3, "function 0: offset 19: function flags 0x08");
	refused_function("\x00\x00\x06\x01\x0a", 5,
			 "function 0: offset 21: attribute 0x0a is no hints");
	refused_function("\x00\x00\x06\x01\x0b\x01\x03\x0b", 8,
			 "function 0: offset 24: attribute 0x0b is no dictionary");
	refused_function("\x00\x00\x06\x01\x0b\x01\x03\x0a\x01\x06\x02", 11,
			 "function 0: offset 27: attribute 0x02 is no integer and no");
	refused_function("\x00\x00\x06\x01\x0b\x01\x03\x0a\x01\x06\x01\x07", 12,
			 "function 0: offset 28: type 7 of 3");
	refused_function("\x00\x00\x02\x01\x05\x00", 6,
			 "function 0: offset 22: a body of 5 bytes passes the end at 23");
	refused_function("\x00\x00\x02\x01\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02", 14,
			 "function 0: offset 21: a number of more than 64 bits");
	refused_function("\x00\x00\x02\x01", 4,
			 "function 0: offset 21: 1 bytes pass the end at 21");
	refused_function("\x00\x00\x02\x01\x00!", 6,
			 "1 bytes follow the last of the function section");
}

TEST(test_same_name_refused)
{
	struct bytes b, functions = {.size = 0};

	put_varint(&functions, 2);
	put_function(&functions, ADD, 2);
	put_body(&functions, 0);
	put_function(&functions, ADD, 2);
	put_body(&functions, 0);
	put_header(&b, 13, 1, 0);
	finish(&b, &functions);
	check_refused(&b, "function 1: two functions have the name in string 0");
}

static void refused_section(const void *section, size_t size, const char *want)
{
	struct bytes b;

	put_header(&b, 13, 1, 0);
	put(&b, section, size);
	check_refused(&b, want);
}

TEST(test_sections_refused)
{
	struct bytes b;

	refused_section("", 0, "offset 12: 1 bytes pass the end at 12");
	refused_section("", 1, "there is no string section");
	refused_section("\x01\x00", 3, "there is no function section");
	refused_section("\x07\x00", 3, "offset 12: section 7 is not known");
	refused_section("\x80\x00\x01", 4, "offset 12: section 0 is not known");
	refused_section("\x01\x00\x01\x00", 5, "offset 14: a second string section");
	refused_section("\x01\x05", 3, "offset 12: string section of 5 bytes passes the");
	refused_section("\x81\x00\x00", 4, "offset 12: alignment 0 is no power of two");
	refused_section("\x81\x00\x03", 4, "offset 12: alignment 3 is no power of two");
	refused_section("\x81\x00\x40", 4,
			"offset 15: alignment 64 passes the end at 16");
	refused_section("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11,
			"offset 12: string section of 18446744073709551615 bytes passes");
	make_two_kernels(&b, 1);
	put_byte(&b, '!');
	check_refused(&b, "offset ");
	b.size -= 2;
	check_refused(&b, "offset ");
}

static void refused_strings(const void *section, size_t size, const char *want)
{
	struct bytes b, strings_section = {.size = 0};

	put(&strings_section, section, size);
	put_header(&b, 13, 1, 0);
	put(&b, "\x02\x06\x01\x00\x00\x02\x00\x00", 8); /* a kernel named by string 0 */
	put(&b, "\x05\x09\x01\xcb\xcb\xcb\0\0\0\0\x10", 11);
	put_section(&b, 1, 1, &strings_section);
	put_byte(&b, 0);
	check_refused(&b, want);
}

TEST(test_strings_refused)
{
	refused_strings("", 0, "offset ");
	refused_strings("\x01", 1, "offset 34: alignment 4 passes the end at 34");
	refused_strings("\x01\xcb\xcb\xcb\0\0\0", 7, "1 strings in 3 bytes");
	refused_strings("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0\0\0\0\0\0", 16,
			"18446744073709551615 strings in 4 bytes");
	refused_strings("\x01\xcb\xcb\xcb\1\0\0\0", 8,
			"string 0 begins at 1, not between 0 and 0");
	refused_strings("\x02\xcb\xcb\xcb\1\0\0\0\0\0\0\0ab", 14,
			"string 1 begins at 0, not between 1 and 2");
	refused_strings("\x01\xcb\xcb\xcb\0\0\0\0a\0b", 11,
			"function 0: string 0 contains a NUL byte");
	refused_strings("\0", 1, "function 0: offset 15: string 0 of 0");
}

/* Every prefix is refused, and no changed byte does harm. */
TEST(test_damaged)
{
	struct kp_object o;
	struct bytes b, cut;

	make_two_kernels(&b, 3);
	for (size_t n = 8; n < b.size; n++) {
		cut = b;
		cut.size = n;
		assert_int_equal(describe(&cut, &o, NULL), KPACK_ERROR_INVALID_FORMAT);
	}
	for (size_t i = 8; i < b.size; i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			cut = b;
			cut.data[i] ^= (uint8_t)(1 << bit);
			if (describe(&cut, &o, NULL) == KPACK_SUCCESS)
				kp_object_fini(&o);
		}
	}
}
