/* SPDX-License-Identifier: MIT */
/* SPIR-V in both byte orders; LLVM bitcode, bare and wrapped. */
#include "tests/unit/exact_copy.h"
#include "tests/unit/unit.h"
#include "tests/unit/bundle_builder.h"
#include "core/format/nest.h"
#include "core/format/object.h"

static struct kpackx_error why;

/* An exactly sized copy, so that a sanitizer detects reads past the end. */
static kpack_error_t describe(const struct bytes *b, struct kp_object *out)
{
	struct kp_source src = exact_copy(b->data, b->size);
	kpack_error_t err = kp_object_describe(&src, out, &why);

	exact_copy_free(&src);
	return err;
}

static struct bytes put_words(const uint32_t *words, size_t n, bool big)
{
	struct bytes b = {0};

	for (size_t i = 0; i < n; i++)
		put_number(&b, big ? __builtin_bswap32(words[i]) : words[i], 4);
	return b;
}

/*
 * "first" and "f" are kernels, "shader" is not; nothing is read after the first function.
 */
static const uint32_t module[] = {
	0x07230203,
	0x00010400,
	0x002b0016,
	36,
	0,
	2 << 16 | 17,
	6, /* OpCapability Kernel */
	5 << 16 | 15,
	6,
	1,
	0x73726966,
	0x00000074, /* "first" */
	6 << 16 | 15,
	5,
	2,
	0x64616873,
	0x00007265,
	7, /* "shader", GLCompute */
	4 << 16 | 15,
	6,
	3,
	0x00000066, /* "f" */
	5 << 16 | 54,
	1,
	2,
	3,
	4, /* OpFunction */
	0, /* not a valid instruction */
};

TEST(kernels_of_both_byte_orders_are_listed)
{
	for (int big = 0; big <= 1; big++) {
		struct bytes b = put_words(module, COUNT(module), big);
		struct kp_object object;

		assert_int_equal(describe(&b, &object), KPACK_SUCCESS);
		assert_string_equal(object.type, "spv");
		assert_string_equal(object.arch, "");
		assert_string_equal(kp_pairs_find(&object.facts, "SPIR-V"), "1.4");
		assert_string_equal(kp_pairs_find(&object.facts, "generator"),
				    "LLVM SPIR-V Backend, version 22");
		assert_int_equal(kp_pairs_find(&object.facts, "byte order") != NULL, big);
		assert_int_equal(object.n_kernels, 2);
		assert_string_equal(object.kernels[0].name, "first");
		assert_string_equal(object.kernels[1].name, "f");
		assert_int_equal(object.kernels[1].vgprs, KP_NOT_STATED);
		kp_object_fini(&object);
		bytes_free(&b);
	}
}

/*
 * LLVM 22 writes 0x0000ffff for AMD's GPUs; other generators put their number in the
 * upper half.
 */
TEST(who_made_it_says_for_what)
{
	static const struct {
		uint32_t generator;
		const char *arch, *fact;
	} cases[] = {
		{0x0000ffff, "amdgcnspirv", "LLVM for AMD GPUs"},
		{0xffff0016, "amdgcnspirv", "LLVM for AMD GPUs"},
		{0x0006000e, "", "LLVM/SPIR-V Translator, version 14"},
		{0x12340001, "", "number 4660, version 1"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct bytes b = put_words(module, COUNT(module), false);
		struct kp_source src = kp_source_memory(b.data, b.size);
		struct kp_containers list;
		struct kp_object object;

		kp_put_le32(b.data + 8, cases[i].generator);
		assert_int_equal(describe(&b, &object), KPACK_SUCCESS);
		assert_string_equal(object.arch, cases[i].arch);
		assert_string_equal(kp_pairs_find(&object.facts, "generator"),
				    cases[i].fact);
		kp_object_fini(&object);
		assert_int_equal(kp_nest_scan(&src, NULL, NULL, &list, &why),
				 KPACK_SUCCESS);
		assert_int_equal(list.count, 1);
		assert_int_equal(list.images[0].size, b.size);
		assert_string_equal(list.images[0].arch, cases[i].arch);
		kp_containers_fini(&list);
		bytes_free(&b);
	}
}

TEST(modules_that_lie_are_refused)
{
	static const struct {
		size_t word;
		uint32_t value;
		const char *text;
	} cases[] = {
		{5, 0 << 16 | 17, "word 5: an instruction of 0 words"},
		{5, 100 << 16 | 17, "word 5: an instruction of 100 words, 23 exist"},
		{7, 3 << 16 | 15, "word 7: an entry point of 3 words"},
		{11, 0x74747474, "word 10: a kernel's name does not end"},
	};
	struct kp_object object;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct bytes b = put_words(module, COUNT(module), false);

		kp_put_le32(b.data + 4 * cases[i].word, cases[i].value);
		assert_int_equal(describe(&b, &object), KPACK_ERROR_INVALID_FORMAT);
		assert_has(why.text, cases[i].text);
		assert_null(object.kernels);
		bytes_free(&b);
	}
	for (size_t n = 4; n < 20; n++) {
		struct bytes b = put_words(module, 5, false);

		b.size = n;
		assert_int_equal(describe(&b, &object), KPACK_ERROR_INVALID_FORMAT);
		bytes_free(&b);
	}
}

/* ---- bitcode ---- */

TEST(bitcode_is_what_follows)
{
	struct bytes b = {0};
	struct kp_containers list;
	struct kp_object object;

	put(&b, "BC\xc0\xde", 4);
	put_zeros(&b, 100);
	struct kp_source src = kp_source_memory(b.data, b.size);
	assert_int_equal(kp_nest_scan(&src, NULL, NULL, &list, &why), KPACK_SUCCESS);
	assert_int_equal(list.count, 1);
	assert_ptr_equal(list.items[0].format, &kp_format_bitcode);
	assert_int_equal(list.items[0].size, 104);
	assert_string_equal(list.images[0].arch, "");
	kp_containers_fini(&list);
	assert_int_equal(describe(&b, &object), KPACK_SUCCESS);
	assert_string_equal(object.type, "bc");
	kp_object_fini(&object);
	bytes_free(&b);
}

static struct bytes wrapped(uint32_t offset, uint32_t size)
{
	struct bytes b = {0};

	put_number(&b, 0x0b17c0de, 4);
	put_number(&b, 0, 4);
	put_number(&b, offset, 4);
	put_number(&b, size, 4);
	put_number(&b, 7, 4);
	put(&b,
	    "BC\xc0\xde"
	    "code",
	    8);
	put_zeros(&b, 4);
	return b;
}

TEST(a_wrapper_says_where_it_ends)
{
	static const struct {
		uint32_t offset, size;
	} bad[] = {{19, 8}, {0, 8}, {20, 13}, {33, 0}, {20, 0xffffffff}, {0xffffffff, 8}};
	struct bytes b = wrapped(20, 8);
	struct kp_source src = kp_source_memory(b.data, b.size);
	struct kp_containers list;

	/* the following bytes are padding */
	assert_int_equal(kp_nest_scan(&src, NULL, NULL, &list, &why), KPACK_SUCCESS);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.items[0].size, 28);
	kp_containers_fini(&list);
	bytes_free(&b);
	for (size_t i = 0; i < COUNT(bad); i++) {
		b = wrapped(bad[i].offset, bad[i].size);
		src = kp_source_memory(b.data, b.size);
		assert_int_equal(kp_nest_scan(&src, NULL, NULL, &list, &why),
				 KPACK_ERROR_INVALID_FORMAT);
		assert_has(why.text, "wrapper of bitcode");
		bytes_free(&b);
	}
}
