/* SPDX-License-Identifier: MIT */
#include "core/cutile/cutile.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include "core/base/bounds.h"

/* A mangled name, and its signature's parameters as Python prints them. */
struct vector {
	const char *name, *python;
};

#define SIMPLE                                                                           \
	"ArrayConstraint(ct.float32, 2, index_dtype=ct.int32, "                          \
	"stride_lower_bound_incl=0, alias_groups=[], may_alias_internally=False)"
#define SCALAR(t) "ScalarConstraint(ct." t ")"

static const struct vector version1[] = {
	{"k_Kt1", ""},
	{"axpy_Kt1_Sb8_Su8_Su16_Su32_Su64",
	 SCALAR("bool_") ", " SCALAR("uint8") ", " SCALAR("uint16") ", " SCALAR(
		 "uint32") ", " SCALAR("uint64")},
	{"axpy_Kt1_Si8_Si16_Si32_Si64",
	 SCALAR("int8") ", " SCALAR("int16") ", " SCALAR("int32") ", " SCALAR("int64")},
	{"axpy_Kt1_Sf16_Sf32_Sf64_Sbf16_Stf32",
	 SCALAR("float16") ", " SCALAR("float32") ", " SCALAR("float64") ", " SCALAR(
		 "bfloat16") ", " SCALAR("tfloat32")},
	{"axpy_Kt1_Sf8m3fn_Sf8m2_Sf8m0fnu",
	 SCALAR("float8_e4m3fn") ", " SCALAR("float8_e5m2") ", " SCALAR(
		 "float8_e8m0fnu")},
	{"k_Kt1_B0_B1", "False, True"},
	{"k_Kt1_I0_I64_I_3", "0, 64, -3"},
	{"k_Kt1_I340282366920938463463374607431768211456_I_18446744073709551616",
	 "340282366920938463463374607431768211456, -18446744073709551616"},
	{"k_Kt1_F3ff0000000000000_F4005bf0a8b145769_F8000000000000000",
	 "1.0, 2.718281828459045, -0.0"},
	{"k_Kt1_F7ff0000000000000_Ffff0000000000000_F7ff8000000000000",
	 "float(\"inf\"), float(\"-inf\"), float(\"nan\")"},
	{"k_Kt1_F7ff0000000000001",
	 "struct.unpack(\">d\", bytes.fromhex(\"7ff0000000000001\"))[0]"},
	{"k_Kt1_F3eb0c6f7a0b5ed8d_F4341c37937e08000_F0000000000000001_F3f1a36e2eb1c432d",
	 "1e-06, 1e+16, 5e-324, 0.0001"},
	{"k_Kt1_A2f32_3l0", SIMPLE},
	{"k_Kt1_A0i8", "ArrayConstraint(ct.int8, 0, index_dtype=ct.int32, "
		       "stride_lower_bound_incl=None, "
		       "alias_groups=[], may_alias_internally=False)"},
	{"k_Kt1_A1f16_1l0_u",
	 "ArrayConstraint(ct.float16, 1, index_dtype=ct.uint32, "
	 "stride_lower_bound_incl=0, alias_groups=[], may_alias_internally=False)"},
	{"k_Kt1_A1f16_1l0_w",
	 "ArrayConstraint(ct.float16, 1, index_dtype=ct.int64, "
	 "stride_lower_bound_incl=0, alias_groups=[], may_alias_internally=False)"},
	{"k_Kt1_A3f32_1v8_3i16l0_4t1_p16",
	 "ArrayConstraint(ct.float32, 3, index_dtype=ct.int32, "
	 "stride_lower_bound_incl=0, alias_groups=[], may_alias_internally=False, "
	 "stride_constant=[None, None, 1], stride_divisible_by=[8, 1, 1], "
	 "shape_divisible_by=[16, 16, 1], base_addr_divisible_by=16)"},
	{"k_Kt1_A2bf16_1l_4_2t_1",
	 "ArrayConstraint(ct.bfloat16, 2, index_dtype=ct.int32, "
	 "stride_lower_bound_incl=-4, alias_groups=[], may_alias_internally=False, "
	 "stride_constant=[None, -1])"},
	{"k_Kt1_A2bf16_1v8l0_2t_1",
	 "ArrayConstraint(ct.bfloat16, 2, index_dtype=ct.int32, "
	 "stride_lower_bound_incl=[0, None], alias_groups=[], "
	 "may_alias_internally=False, stride_constant=[None, -1], "
	 "stride_divisible_by=[8, 1])"},
	{"k_Kt1_A2u8_3i2v4_g0i_A2u8_g0",
	 "ArrayConstraint(ct.uint8, 2, index_dtype=ct.int32, "
	 "stride_lower_bound_incl=None, alias_groups=[\"group0\"], "
	 "may_alias_internally=True, stride_divisible_by=4, shape_divisible_by=2), "
	 "ArrayConstraint(ct.uint8, 2, index_dtype=ct.int32, "
	 "stride_lower_bound_incl=None, alias_groups=[\"group0\"], "
	 "may_alias_internally=False)"},
	{"k_Kt1_A0i8_g0_A0i8_g0g1_A0i8_g1",
	 "ArrayConstraint(ct.int8, 0, index_dtype=ct.int32, "
	 "stride_lower_bound_incl=None, "
	 "alias_groups=[\"group0\"], may_alias_internally=False), "
	 "ArrayConstraint(ct.int8, 0, index_dtype=ct.int32, "
	 "stride_lower_bound_incl=None, "
	 "alias_groups=[\"group0\", \"group1\"], may_alias_internally=False), "
	 "ArrayConstraint(ct.int8, 0, index_dtype=ct.int32, "
	 "stride_lower_bound_incl=None, "
	 "alias_groups=[\"group1\"], may_alias_internally=False)"},
	{"k_Kt1_LA2f32_3l0",
	 "ListConstraint(" SIMPLE ", alias_groups=[], elements_may_alias=False)"},
	{"k_Kt1_LA1f64_1l0_w",
	 "ListConstraint(ArrayConstraint(ct.float64, 1, index_dtype=ct.int64, "
	 "stride_lower_bound_incl=0, alias_groups=[], may_alias_internally=False), "
	 "alias_groups=[], elements_may_alias=False)"},
	{"k_Kt1_LiA2f32_3l0",
	 "ListConstraint(" SIMPLE ", alias_groups=[], elements_may_alias=True)"},
	{"k_Kt1_Lg0iA2f32_3l0_Lg0A2f32_3l0",
	 "ListConstraint(" SIMPLE
	 ", alias_groups=[\"group0\"], elements_may_alias=True), "
	 "ListConstraint(" SIMPLE
	 ", alias_groups=[\"group0\"], elements_may_alias=False)"},
	{"k_Kt1_Lg0A0i8_g1_Lg0A0i8_g1",
	 "ListConstraint(ArrayConstraint(ct.int8, 0, index_dtype=ct.int32, "
	 "stride_lower_bound_incl=None, alias_groups=[\"group1\"], "
	 "may_alias_internally=False), alias_groups=[\"group0\"], "
	 "elements_may_alias=False), "
	 "ListConstraint(ArrayConstraint(ct.int8, 0, index_dtype=ct.int32, "
	 "stride_lower_bound_incl=None, alias_groups=[\"group1\"], "
	 "may_alias_internally=False), alias_groups=[\"group0\"], "
	 "elements_may_alias=False)"},
	{"mixed_Kt1_I7_A2f32_3l0_B0_Sbf16_LA2f32_3l0_F3fe0000000000000_Si64_I0",
	 "7, " SIMPLE ", False, " SCALAR("bfloat16") ", ListConstraint(" SIMPLE
						     ", alias_groups=[], "
						     "elements_may_alias=False), "
						     "0.5, " SCALAR("int64") ", 0"},
};

static const struct vector version2[] = {
	{"k_Kt2_T0", "TupleConstraint([])"},
	{"k_Kt2_T1Si8", "TupleConstraint([" SCALAR("int8") "])"},
	{"k_Kt2_T2Si8Sf64",
	 "TupleConstraint([" SCALAR("int8") ", " SCALAR("float64") "])"},
	{"k_Kt2_T1A2f32_3l0", "TupleConstraint([" SIMPLE "])"},
	{"k_Kt2_T2A2f32_3l0Si8", "TupleConstraint([" SIMPLE ", " SCALAR("int8") "])"},
	{"k_Kt2_T2I_12I3_A2f32_3l0", "TupleConstraint([-12, 3]), " SIMPLE},
	{"k_Kt2_T1T0", "TupleConstraint([TupleConstraint([])])"},
	{"k_Kt2_T1T2B1F0000000000000000",
	 "TupleConstraint([TupleConstraint([True, 0.0])])"},
	{"k_Kt2_T2Si8T1I1",
	 "TupleConstraint([" SCALAR("int8") ", TupleConstraint([1])])"},
	{"k_Kt2_T1T1T1Si8",
	 "TupleConstraint([TupleConstraint([TupleConstraint([" SCALAR("int8") "])])])"},
	{"k_Kt2_A2f32_1s16_3l0",
	 "ArrayConstraint(ct.float32, 2, index_dtype=ct.int32, "
	 "stride_lower_bound_incl=0, alias_groups=[], may_alias_internally=False, "
	 "shape_constant=[16, None])"},
	{"k_Kt2_A2i8_1s0i", NULL},
	{"k_Kt2_A2i8_1s8_2i4",
	 "ArrayConstraint(ct.int8, 2, index_dtype=ct.int32, "
	 "stride_lower_bound_incl=None, "
	 "alias_groups=[], may_alias_internally=False, shape_constant=[8, None], "
	 "shape_divisible_by=4)"},
	{"k_Kt2_A2i8_1s6_2i4",
	 "ArrayConstraint(ct.int8, 2, index_dtype=ct.int32, "
	 "stride_lower_bound_incl=None, "
	 "alias_groups=[], may_alias_internally=False, shape_constant=[6, None], "
	 "shape_divisible_by=[1, 4])"},
};

static const struct vector version3[] = {
	{"k_Kt3_Da_2eb_zPoint_z2Sf32I1",
	 "DataclassConstraint(a.b.Point, [" SCALAR("float32") ", 1])"},
	{"k_Kt3_D_z_z0", "DataclassConstraint(., [])"},
	{"k_Kt3_Dm_zf_2e_3clocals_3e_2e_kk_z1T1I1",
	 "DataclassConstraint(m.f.<locals>.Kk, [TupleConstraint([1])])"},
	{"k_Kt3_Cn__I1_Cn_", "None, 1, None"},
	{"k_Kt3_Cs__z_Cs_a__b_20_kK", NULL},
	{"k_Kt3_Cs__z_Cs_a__b_20_k_z", "'', 'a_b K'"},
	{"k_Kt3_Cs__27_5c_0a_00_z", "'\\'\\\\\\n\\x00'"},
	{"k_Kt3_Cs__e9_u0431_w0001f914_z", "'\xc3\xa9\xd0\xb1\xf0\x9f\xa4\x94'"},
	{"k_Kt3_Cs__ud800_u202e_z", "'\\ud800\\u202e'"},
	{"k_Kt3_Ce_m_zColour_zRED_z", "m.Colour.RED"},
	{"k_Kt3_Cd_f32_Cd_f8m2", "ct.float32, ct.float8_e5m2"},
};

static char *python_of(const char *name)
{
	struct kpackx_signature *s = NULL;
	struct kpackx_error why = {0};
	char *text = NULL;

	if (kpackx_demangle(name, &s, &why) != KPACK_SUCCESS)
		print_error("%s: %s\n", name, why.text);
	assert_non_null(s);
	assert_int_equal(kp_cutile_python(s, NULL, &text, NULL), KPACK_SUCCESS);
	kpackx_signature_free(s);
	return text;
}

static void check_remangled(const char *name)
{
	struct kpackx_signature *s = NULL;
	char *again = NULL;

	assert_int_equal(kpackx_demangle(name, &s, NULL), KPACK_SUCCESS);
	assert_int_equal(kpackx_mangle(s, &again, NULL), KPACK_SUCCESS);
	assert_string_equal(again, name);
	kpackx_symbol_free(again);
	kpackx_signature_free(s);
}

static void check_vectors(const struct vector *v, size_t n, unsigned convention)
{
	struct kpackx_signature *s = NULL;
	char want[2048], *text;

	for (size_t i = 0; i < n; i++) {
		if (!v[i].python) {
			assert_int_equal(kpackx_demangle(v[i].name, &s, NULL),
					 KPACK_ERROR_INVALID_FORMAT);
			continue;
		}
		snprintf(want, sizeof(want),
			 "KernelSignature([%s], CallingConvention.cutile_python_v%u())",
			 v[i].python, convention);
		text = python_of(v[i].name);
		assert_string_equal(text, want);
		free(text);
		check_remangled(v[i].name);
	}
}

TEST(test_vectors)
{
	check_vectors(version1, COUNT(version1), 1);
	check_vectors(version2, COUNT(version2), 2);
	check_vectors(version3, COUNT(version3), 3);
}

/*
 * Features of a later convention are refused in an earlier one; earlier names stay valid.
 */
TEST(test_conventions)
{
	struct kpackx_signature *s = NULL;
	struct kpackx_error why = {0};
	char name[256];

	for (size_t i = 0; i < COUNT(version1); i++) {
		char *t = strcpy(name, version1[i].name);

		strstr(t, "_Kt1")[3] = '3';
		check_remangled(name);
	}
	for (size_t i = 0; i < COUNT(version2); i++) {
		strstr(strcpy(name, version2[i].name), "_Kt2")[3] = '1';
		assert_int_equal(kpackx_demangle(name, &s, &why),
				 KPACK_ERROR_INVALID_FORMAT);
		assert_has(why.text, "calling convention 2");
	}
	for (size_t i = 0; i < COUNT(version3); i++) {
		strstr(strcpy(name, version3[i].name), "_Kt3")[3] = '2';
		assert_int_equal(kpackx_demangle(name, &s, &why),
				 KPACK_ERROR_INVALID_FORMAT);
		assert_has(why.text, "calling convention 3");
	}
	assert_null(s);
}

/* Every kind of invalid name, with the offset and the reason. */
static const struct {
	const char *name, *why;
} rejected[] = {
	{"", "offset 0: no _K"},
	{"plain", "offset 5: no _K"},
	{"a_K", "offset 3: the name ends"},
	{"a_Kt", "offset 4: the name ends"},
	{"a_Kx1", "offset 3: a calling convention"},
	{"a_Kt01", "offset 4: a calling convention begins with a zero"},
	{"_ZN3fooI_KernelEv", "offset 10: a calling convention"},
	{"a_Kt1x", "offset 5: _ or the end is expected, not \"x\""},
	{"a_Kt1_", "offset 6: the name ends where a parameter"},
	{"a_Kt1_X", "offset 6: a parameter"},
	{"a_Kt1_C", "offset 6: a parameter"},
	{"a_Kt1__Si32", "offset 6: a parameter"},
	{"a_Kt1_S", "offset 7: the name ends where a data type"},
	{"a_Kt1_Sf33", "offset 7: no data type is called \"f33\""},
	{"a_Kt1_Si32Si32", "offset 10: _ or the end"},
	{"a_Kt1_B2", "offset 7: 0 or 1"},
	{"a_Kt1_I", "offset 7: the name ends where an integer"},
	{"a_Kt1_I_", "offset 8: the name ends where an integer"},
	{"a_Kt1_I_0", "offset 7: an integer is zero with a sign"},
	{"a_Kt1_I-1", "offset 7: an integer"},
	{"a_Kt1_I007", "offset 7: an integer begins with a zero"},
	{"a_Kt1_F3ff", "offset 10: the name ends where a hexadecimal digit"},
	{"a_Kt1_F3FF0000000000000", "offset 8: a hexadecimal digit"},
	{"a_Kt1_A", "offset 7: the name ends where the number of dimensions"},
	{"a_Kt1_Af32", "offset 7: the number of dimensions"},
	{"a_Kt1_A02f32", "offset 7: the number of dimensions begins with a zero"},
	{"a_Kt1_A65f32", "offset 7: the number of dimensions passes the limit of 64"},
	{"a_Kt1_A99999999999999999999f32", "offset 7: the number of dimensions passes"},
	{"a_Kt1_A2", "offset 8: the name ends where a data type"},
	{"a_Kt1_A2f32_0l0", "offset 12: a mask of no dimension"},
	{"a_Kt1_A2f32_4l0", "offset 12: mask 4 has dimensions, and the array 2"},
	{"a_Kt1_A0f32_1l0", "offset 12: mask 1 has dimensions, and the array 0"},
	{"a_Kt1_A2f32_10000000000000000l0", "offset 12: a mask passes the limit"},
	{"a_Kt1_A2f32_03l0", "offset 12: a mask begins with a zero"},
	{"a_Kt1_A2f32_3", "offset 13: the name ends where a predicate"},
	{"a_Kt1_A2f32_3x", "offset 13: a predicate"},
	{"a_Kt1_A2f32_3l", "offset 14: the name ends where a stride's lower bound"},
	{"a_Kt1_A2f32_3l0l0", "offset 15: _ or the end"},
	{"a_Kt1_A2f32_3l0i2", "offset 15: _ or the end"},
	{"a_Kt1_A2f32_3l9223372036854775808", "offset 14: a stride's lower bound passes"},
	{"a_Kt1_A2f32_3l_0", "offset 14: a stride's lower bound is zero with a sign"},
	{"a_Kt1_A2f32_3i1", "offset 14: a shape's divisor is 1, and must be 2 or more"},
	{"a_Kt1_A2f32_3v_8", "offset 14: a stride's divisor is -8"},
	{"a_Kt2_A2f32_3s_8", "offset 14: a shape is -8, below 0"},
	{"a_Kt1_A2f32_2l0_1l1", "offset 16: mask 1 does not follow 2"},
	{"a_Kt1_A2f32_1l0_1v8", "offset 16: mask 1 does not follow 1"},
	{"a_Kt1_A2f32_1l0_3l1", "offset 16: dimension 0 has such a predicate"},
	{"a_Kt1_A2f32_1t1_3l0", "offset 16: dimension 0 has a constant stride and a"},
	{"a_Kt1_A2f32_1t1v8", "offset 12: dimension 0 has a constant stride and a"},
	{"a_Kt2_A2f32_1s8i8", "offset 12: dimension 0 has a constant shape and a div"},
	{"a_Kt1_A2f32_1l0_2l0", "offset 12: cuTile gives this signature another name, "
				"which continues here with \"3l0\""},
	{"a_Kt1_A2f32_x", "offset 12: an array's property"},
	{"a_Kt1_A2f32_p1", "offset 13: a base address's divisor is 1"},
	{"a_Kt1_A2f32_ip8", "offset 13: _ or the end"},
	{"a_Kt1_A2f32_g1", "offset 13: alias group 1 is used before group 0"},
	{"a_Kt1_A2f32_g0g0", "offset 15: alias group 0 does not follow group 0"},
	{"a_Kt1_A2f32_g0_A2f32_g2", "offset 22: alias group 2 is used before group 1"},
	{"a_Kt1_L", "offset 7: the name ends where the array of a list"},
	{"a_Kt1_LSi32", "offset 7: the array of a list"},
	{"a_Kt1_LLA1f32", "offset 7: the array of a list"},
	{"a_Kt2_T", "offset 7: the name ends where a count of items"},
	{"a_Kt2_T2Si32", "offset 12: the name ends where a parameter"},
	{"a_Kt2_T1_Si32", "offset 8: a parameter"},
	{"a_Kt2_T1Si32Si32", "offset 12: _ or the end"},
	{"a_Kt2_T4294967296Si32", "offset 7: a count of items passes the limit"},
	{"a_Kt3_Cs_abc", "offset 12: the name ends where a string's end"},
	{"a_Kt3_Cs_a-z", "offset 10: a string's end"},
	{"a_Kt3_Cs__q_z", "offset 10: an escape"},
	{"a_Kt3_Cs__41_z", "offset 9: U+0041 has a shorter form"},
	{"a_Kt3_Cs__5f_z", "offset 9: U+005F has a shorter form"},
	{"a_Kt3_Cs__u00e9_z", "offset 9: U+00E9 has a shorter form"},
	{"a_Kt3_Cs__w0000d800_z", "offset 9: U+D800 has a shorter form"},
	{"a_Kt3_Cs__w00110000_z", "offset 9: no character is U+110000"},
	{"a_Kt3_Cx_", "offset 6: a parameter"},
	{"a_Kt3_Cd_f", "offset 9: no data type is called \"f\""},
	{"a_Kt1_Si32_Kernel", "offset 12: a calling convention"},
};

TEST(test_rejected)
{
	struct kpackx_signature *s = NULL;

	for (size_t i = 0; i < COUNT(rejected); i++) {
		struct kpackx_error why = {0};

		assert_int_equal(kpackx_demangle(rejected[i].name, &s, &why),
				 KPACK_ERROR_INVALID_FORMAT);
		if (strncmp(why.text, rejected[i].why, strlen(rejected[i].why)) != 0)
			fail_msg("%s: \"%s\", not \"%s\"", rejected[i].name, why.text,
				 rejected[i].why);
		assert_null(s);
	}
}

TEST(test_unknown_convention)
{
	struct kpackx_signature none = {.function = {"f", 1}, .convention = 4}, *s = NULL;
	struct kpackx_error why = {0};
	char *name = NULL;

	assert_int_equal(kpackx_demangle("f_Kt4_Si32", &s, &why),
			 KPACK_ERROR_UNSUPPORTED_VERSION);
	assert_string_equal(
		why.text, "offset 3: calling convention t4 is not known, only t1 to t3");
	assert_int_equal(kpackx_demangle("f_Kt0", &s, &why),
			 KPACK_ERROR_UNSUPPORTED_VERSION);
	assert_int_equal(kpackx_mangle(&none, &name, &why),
			 KPACK_ERROR_UNSUPPORTED_VERSION);
	assert_true(!s && !name);
}

TEST(test_null)
{
	struct kpackx_signature some = {.convention = 1}, *s = NULL;
	char *name = NULL;

	assert_int_equal(kpackx_demangle(NULL, &s, NULL), KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpackx_demangle("a_Kt1", NULL, NULL),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpackx_mangle(NULL, &name, NULL), KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpackx_mangle(&some, NULL, NULL), KPACK_ERROR_INVALID_ARGUMENT);
	kpackx_signature_free(NULL);
	kpackx_symbol_free(NULL);
}

TEST(test_named)
{
	assert_true(kp_cutile_named(kp_span_str("f_Kt1")));
	assert_true(kp_cutile_named(kp_span_str("f_K_Kt9_whatever")));
	assert_false(kp_cutile_named(kp_span_str("")));
	assert_false(kp_cutile_named(kp_span_str("K")));
	assert_false(kp_cutile_named(kp_span_str("_K")));
	assert_false(kp_cutile_named(kp_span_str("_Kt")));
	assert_false(kp_cutile_named(kp_span_str("_Ktx")));
	assert_false(kp_cutile_named(kp_span_str("_Z6kernelPf")));
	assert_false(kp_cutile_named(kp_span_str("f_Kt1_K")));
}

/* Everything before the last "_K" is the function's name, whatever it contains. */
TEST(test_function)
{
	static const char *const functions[] = {"f",          "",         "my_Kernel",
						"a_Kt1_Si32", "<lambda>", "\xd0\xb1"};
	struct kpackx_signature *s = NULL;
	char name[64];

	for (size_t i = 0; i < COUNT(functions); i++) {
		snprintf(name, sizeof(name), "%s_Kt1_I1", functions[i]);
		assert_int_equal(kpackx_demangle(name, &s, NULL), KPACK_SUCCESS);
		assert_string_equal(s->function.data, functions[i]);
		assert_int_equal(s->function.size, strlen(functions[i]));
		assert_int_equal(s->convention, 1);
		kpackx_signature_free(s);
		check_remangled(name);
	}
}

struct argument {
	const char *name, *type;
	uint32_t size, parameter, words;
};

static void check_arguments(const char *name, const struct argument *want, size_t n)
{
	struct kpackx_signature *s = NULL;

	assert_int_equal(kpackx_demangle(name, &s, NULL), KPACK_SUCCESS);
	assert_int_equal(s->n_arguments, n);
	for (size_t i = 0; i < n; i++) {
		const struct kpackx_argument *a = &s->arguments[i];

		assert_string_equal(a->name, want[i].name);
		assert_string_equal(a->type, want[i].type);
		assert_int_equal(a->size, want[i].size);
		assert_int_equal(a->parameter, want[i].parameter);
		assert_int_equal(a->words, want[i].words);
		assert_true(strlen(a->meaning) > 0);
	}
	kpackx_signature_free(s);
}

TEST(test_arguments)
{
	static const struct argument flat[] = {
		{"p0", "float *", 8, 0, 0},
		{"p0.shape[0]", "int32_t", 4, 0, 0},
		{"p0.shape[1]", "int32_t", 4, 0, 0},
		{"p0.stride[0]", "int32_t", 4, 0, 0},
		{"p0.stride[1]", "int32_t", 4, 0, 0},
		{"p2", "__nv_bfloat16", 2, 2, 0},
		{"p3", "int64_t *", 8, 3, 7},
		{"p3.length", "int32_t", 4, 3, 0},
		{"p4", "int8_t *", 8, 4, 0},
	};
	static const struct argument nested[] = {
		{"p0[1]", "double", 8, 0, 0},
		{"p0[2][0]", "uint8_t *", 8, 0, 0},
		{"p0[2][0].shape[0]", "int64_t", 8, 0, 0},
		{"p0[2][0].stride[0]", "int64_t", 8, 0, 0},
		{"p1", "__half *", 8, 1, 0},
		{"p1.shape[0]", "uint32_t", 4, 1, 0},
		{"p1.stride[0]", "uint32_t", 4, 1, 0},
	};

	check_arguments("f_Kt1_A2f32_3l0_I3_Sbf16_LA3f32_w_A0i8", flat, COUNT(flat));
	check_arguments("f_Kt2_T3B1Sf64T1A1u8_w_A1f16_1s4_u", nested, COUNT(nested));
	check_arguments("f_Kt1", NULL, 0);
	check_arguments("f_Kt3_I1_Cn__Cs_x_z", NULL, 0);
}

/* ---- limits ---- */

/* BEGIN, N times TEXT, then END. */
static char *repeated(const char *begin, const char *text, size_t n, const char *end)
{
	size_t size = strlen(begin) + n * strlen(text) + strlen(end) + 1;
	char *name = malloc(size), *p;

	assert_non_null(name);
	p = stpcpy(name, begin);
	while (n--)
		p = stpcpy(p, text);
	strcpy(p, end);
	return name;
}

static void check_limit(char *name, const char *want)
{
	struct kpackx_signature *s = NULL;
	struct kpackx_error why = {0};
	kpack_error_t err = kpackx_demangle(name, &s, &why);

	if (!want)
		assert_int_equal(err, KPACK_SUCCESS);
	else
		assert_string_equal(why.text, want);
	kpackx_signature_free(s);
	free(name);
}

TEST(test_limits)
{
	check_limit(repeated("f_Kt2_", "T1", 32, "B0"), NULL);
	check_limit(repeated("f_Kt2_", "T1", 33, "B0"),
		    "offset 71: nested deeper than 32");
	check_limit(repeated("f_Kt1", "_A64i8", 253, ""), NULL);
	check_limit(repeated("f_Kt1", "_A64i8", 254, ""),
		    "offset 1524: more than 32764 launch arguments");
	check_limit(repeated("f_Kt1_I", "7", 65536 - 7, ""), NULL);
	check_limit(repeated("f_Kt1_I", "7", 65537 - 7, ""),
		    "offset 65536: the name has 65537 bytes, the limit is 65536");
	/* a stated count is not trusted for allocation */
	check_limit(repeated("f_Kt2_T9", "T9", 31, ""),
		    "offset 70: the name ends where a parameter (S A L T D B I F C) is "
		    "expected");
	check_limit(repeated("f_Kt1_A64f32_", "f", 16, "l0"), NULL);
	check_limit(repeated("f_Kt1", "_LA64i8", 9000, ""), NULL);
	check_limit(repeated("f_Kt1_A1i8_", "g0", 2, ""),
		    "offset 14: alias group 0 does not follow group 0");
}

TEST(test_nul)
{
	struct kpackx_signature *s = NULL;
	struct kpackx_error why = {0};

	assert_int_equal(
		kp_cutile_demangle((struct kp_span){(const uint8_t *)"f\0_Kt1", 6}, &s,
				   &why),
		KPACK_ERROR_INVALID_FORMAT);
	assert_string_equal(why.text, "offset 1: a NUL byte");
}

TEST(test_lines)
{
	struct kpackx_signature *s = NULL;
	char *text = NULL;

	assert_int_equal(kpackx_demangle("f_Kt1_I1_Si8", &s, NULL), KPACK_SUCCESS);
	assert_int_equal(kp_cutile_python(s, "  ", &text, NULL), KPACK_SUCCESS);
	assert_string_equal(text, "KernelSignature([\n"
				  "      1,\n"
				  "      ScalarConstraint(ct.int8),\n"
				  "  ], CallingConvention.cutile_python_v1())");
	free(text);
	kpackx_signature_free(s);
}
