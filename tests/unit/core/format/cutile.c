/* SPDX-License-Identifier: MIT */
/*
 * Names of cuTile kernels that no command makes, or that no file can hold.  All others
 * are in tests/golden/cutile-names.
 */
#include "core/format/cutile.h"
#include "tests/unit/unit.h"
#include <stdlib.h>
#include "core/base/bounds.h"

static const struct kpackx_axis axes[][3] = {
	[0] = {{0}},
	[1] = {{.has_shape_constant = true,
		.shape_constant = 16,
		.shape_divisible_by = 16},
	       {.stride_divisible_by = 1},
	       {.has_stride_constant = true,
		.stride_constant = 8,
		.stride_divisible_by = 8,
		.has_stride_lower_bound = true,
		.stride_lower_bound = 8}},
	[2] = {{.shape_divisible_by = 3},
	       {.has_stride_lower_bound = true, .stride_lower_bound = INT64_MIN},
	       {.shape_divisible_by = 3, .stride_divisible_by = 4}},
	[3] = {{.has_shape_constant = true,
		.shape_constant = 16,
		.shape_divisible_by = 5}},
	[4] = {{.shape_divisible_by = -1}},
	[5] = {{.has_shape_constant = true, .shape_constant = -1}},
	[6] = {{0},
	       {.has_stride_constant = true,
		.stride_constant = 8,
		.has_stride_lower_bound = true,
		.stride_lower_bound = 9}},
	[7] = {{.has_stride_constant = true,
		.stride_constant = 8,
		.stride_divisible_by = 16}},
	[8] = {{0}, {.reserved = {0, 1}}},
	[9] = {{.stride_divisible_by = -2}},
};
static const uint32_t groups[] = {0, 1, 0};
static const struct kpackx_constraint scalar = {.kind = KPACKX_SCALAR,
						.dtype = KPACKX_DTYPE_INT8};
static const struct kpackx_constraint array = {.kind = KPACKX_ARRAY,
					       .dtype = KPACKX_DTYPE_INT8};
/* A tree that contains itself. */
static const struct kpackx_constraint cycle = {
	.kind = KPACKX_TUPLE, .n_items = 1, .items = &cycle};

#define ARRAY(n)                                                                         \
	.kind = KPACKX_ARRAY, .dtype = KPACKX_DTYPE_INT8, .ndim = 3, .axes = axes[n]
#define PLAIN .kind = KPACKX_ARRAY, .dtype = KPACKX_DTYPE_INT8
#define TEXT(k, t) .kind = KPACKX_CONST_##k, .text = {t, sizeof(t) - 1}

/* A signature f with this parameter: its name, or why it has none. */
static const struct {
	struct kpackx_constraint c;
	uint32_t convention;
	const char *want;
} parameters[] = {
	{{ARRAY(0)}, 1, "f_Kt1_A3i8"},
	{{ARRAY(1), .base_addr_divisible_by = 1}, 2, "f_Kt2_A3i8_1s16_4t8"},
	{{ARRAY(1)}, 1, "dimension 0: static shapes need calling convention 2"},
	{{ARRAY(2), .base_addr_divisible_by = 2, .index_dtype = KPACKX_DTYPE_INT64},
	 1,
	 "f_Kt1_A3i8_2l_9223372036854775808_4v4_5i3_p2w"},
	{{ARRAY(3)}, 2, "dimension 0: shape 16 is not divisible by 5"},
	{{ARRAY(4)}, 2, "dimension 0: a divisor is below 0"},
	{{ARRAY(5)}, 2, "dimension 0: shape -1 is below 0"},
	{{ARRAY(6)}, 2, "dimension 1: stride 8 is below its bound 9"},
	{{ARRAY(7)}, 2, "dimension 0: stride 8 is not divisible by 16"},
	{{ARRAY(8)}, 2, "dimension 1: reserved is not 0"},
	{{ARRAY(9)}, 2, "dimension 0: a divisor is below 0"},
	{{.kind = KPACKX_ARRAY, .ndim = 65}, 3, "65 dimensions, the limit is 64"},
	{{.kind = KPACKX_ARRAY, .ndim = 1}, 3, "axes is NULL"},
	{{PLAIN, .base_addr_divisible_by = -2},
	 3,
	 "the base address's divisor is below 0"},
	{{PLAIN, .index_dtype = KPACKX_DTYPE_INT8},
	 3,
	 "index_dtype 6 is not int32, uint32 or int64"},
	{{PLAIN, .alias_groups = groups, .n_alias_groups = 2, .may_alias = true},
	 1,
	 "f_Kt1_A0i8_g0g1i"},
	{{PLAIN, .alias_groups = groups + 1, .n_alias_groups = 1},
	 3,
	 "alias group 1 is used before group 0"},
	{{PLAIN, .alias_groups = groups, .n_alias_groups = 3},
	 3,
	 "alias group 0 does not follow group 1"},
	{{PLAIN, .n_alias_groups = 1}, 3, "alias_groups is NULL"},
	{{.kind = KPACKX_LIST, .items = &array, .n_items = 1, .may_alias = true},
	 1,
	 "f_Kt1_LiA0i8"},
	{{.kind = KPACKX_LIST}, 3, "a list has one item, an array"},
	{{.kind = KPACKX_LIST, .n_items = 1}, 3, "a list has one item, an array"},
	{{.kind = KPACKX_LIST, .items = &scalar, .n_items = 1},
	 3,
	 "a list has one item, an array"},
	{{0}, 3, "kind 0 is not known"},
	{{.kind = (kpackx_constraint_kind_t)99}, 3, "kind 99 is not known"},
	{{.kind = KPACKX_SCALAR}, 3, "dtype 0 is not known"},
	{{.kind = KPACKX_SCALAR, .dtype = KPACKX_DTYPE_INT8, .reserved = {0, 0, 1}},
	 3,
	 "reserved is not 0"},
	{{.kind = KPACKX_TUPLE, .n_items = 1}, 3, "items are NULL"},
	{{.kind = KPACKX_TUPLE, .n_items = 1, .items = &cycle},
	 2,
	 "item 0: nested deeper than 32"},
	{{.kind = KPACKX_CONST_BOOL, .bits = 2}, 3, "bool 2 is not 0 or 1"},
	{{.kind = KPACKX_CONST_INT}, 3, "text of an integer is NULL"},
	{{TEXT(INT, "")}, 3, "an integer has no digits, or a zero in front"},
	{{TEXT(INT, "-0")}, 3, "an integer has no digits, or a zero in front"},
	{{TEXT(INT, "-1x")}, 3, "byte 2 of an integer is no digit"},
	{{.kind = KPACKX_CONST_STR, .text = {NULL, 1}}, 3, "text is NULL"},
	{{TEXT(STR, "a\xff")}, 3, "text is no UTF-8 at byte 1"},
	{{.kind = KPACKX_DATACLASS, .module = {"\xed\xa0", 2}},
	 3,
	 "module is no UTF-8 at byte 0"},
	{{.kind = KPACKX_CONST_ENUM, .qualname = {NULL, 70000}}, 3, "qualname is NULL"},
	{{.kind = KPACKX_CONST_ENUM, .qualname = {"", 70000}},
	 3,
	 "qualname has 70000 bytes, the limit is 65536"},
};

TEST(signatures_become_names)
{
	for (size_t i = 0; i < COUNT(parameters); i++) {
		struct kpackx_signature s = {.function = {"f", 1},
					     .convention = parameters[i].convention,
					     .parameters = &parameters[i].c,
					     .n_parameters = 1};
		const char *want = parameters[i].want;
		struct kpackx_error why = {0};
		char *name = NULL;

		if (strncmp(want, "f_K", 3) == 0) {
			assert_int_equal(kpackx_mangle(&s, &name, &why), KPACK_SUCCESS);
			assert_string_equal(name, want);
		} else {
			assert_int_equal(kpackx_mangle(&s, &name, &why),
					 KPACK_ERROR_INVALID_ARGUMENT);
			assert_has(why.text, "parameter 0: ");
			assert_has(why.text, want);
			assert_null(name);
		}
		kpackx_symbol_free(name);
	}
}

TEST(a_whole_signature_is_checked)
{
	const struct {
		struct kpackx_signature s;
		kpack_error_t err;
		const char *want;
	} rows[] = {
		{{.convention = 1, .n_parameters = 1},
		 KPACK_ERROR_INVALID_ARGUMENT,
		 "parameters are NULL"},
		{{.convention = 1, .function = {"a\0b", 3}},
		 KPACK_ERROR_INVALID_ARGUMENT,
		 "function contains a NUL byte"},
		{{.convention = 1, .function = {NULL, 3}},
		 KPACK_ERROR_INVALID_ARGUMENT,
		 "function is NULL"},
		{{.convention = 1, .reserved = {0, 0, 0, 1}},
		 KPACK_ERROR_INVALID_ARGUMENT,
		 "reserved is not 0"},
		{{.convention = 4}, KPACK_ERROR_UNSUPPORTED_VERSION, "convention"},
		{{.convention = 1}, KPACK_SUCCESS, "_Kt1"},
	};
	struct kpackx_signature *none = NULL;
	char *name = NULL;

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct kpackx_error why = {0};

		assert_int_equal(kpackx_mangle(&rows[i].s, &name, &why), rows[i].err);
		assert_has(name ? name : why.text, rows[i].want);
	}
	kpackx_symbol_free(name);
	assert_int_equal(kpackx_mangle(NULL, &name, NULL), KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpackx_mangle(&rows[5].s, NULL, NULL),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpackx_demangle(NULL, &none, NULL),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpackx_demangle("a_Kt1", NULL, NULL),
			 KPACK_ERROR_INVALID_ARGUMENT);
	kpackx_signature_free(NULL);
}

TEST(names_have_bounds)
{
	static const struct {
		const char *begin, *text;
		size_t n;
		const char *want;
	} rows[] = {
		{"f_Kt1", "_A64i8", 253, NULL},
		{"f_Kt1", "_A64i8", 254,
		 "parameter 253: more than 32764 launch arguments"},
		{"f_Kt1_I", "7", 65536 - 7, NULL},
		{"f_Kt1_I", "7", 65537 - 7,
		 "offset 65536: the name has 65537 bytes, the limit is 65536"},
		{"f_Kt1", "_LA64i8", 9000, NULL},
		{"f", "", 0, "offset 1: no _K"},
		{"f_K", "", 0, "offset 3: the name ends"},
	};
	static char name[70000];

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct kpackx_signature *s = NULL;
		struct kpackx_error why = {0};
		char *p = stpcpy(name, rows[i].begin);

		for (size_t n = rows[i].n; n--;)
			p = stpcpy(p, rows[i].text);
		assert_int_equal(kpackx_demangle(name, &s, &why),
				 rows[i].want ? KPACK_ERROR_INVALID_FORMAT
					      : KPACK_SUCCESS);
		assert_has(why.text, rows[i].want ? rows[i].want : "");
		kpackx_signature_free(s);
	}
	assert_int_equal(
		kp_cutile_demangle((struct kp_span){(const uint8_t *)"f\0_Kt1", 6},
				   &(struct kpackx_signature *){NULL}, NULL),
		KPACK_ERROR_INVALID_FORMAT);
	for (size_t i = 0; i < 8; i++) {
		static const char *const none[] = {
			"",     "K",           "_K",      "_Kt",
			"_Ktx", "_Z6kernelPf", "f_Kt1_K", "f_Kt1_Kernel"};

		assert_false(kp_cutile_named(kp_span_str(none[i])));
	}
	assert_true(kp_cutile_named(kp_span_str("f_K_Kt9_whatever")));
}
