/* SPDX-License-Identifier: MIT */
#include "packer/library/cutile_signature.h"
#include "tests/unit/unit.h"
#include <stdlib.h>
#include <unistd.h>
#include "core/base/json.h"

/* The facts as JSON, as readers of the metadata see them. */
static char *json_of(const struct facts *f)
{
	struct facts outer = {0};
	struct kp_mp cursor;
	struct kp_json json;
	struct kp_span text;
	char *out;

	facts_map(&outer, "x", f);
	cursor = kp_mp_over((struct kp_span){outer.pairs, outer.size});
	assert_true(kp_mp_skip(&cursor));
	kp_json_init(&json, 64 << 20);
	kp_json_value(&json, &cursor);
	assert_int_equal(kp_json_finish(&json, &text, NULL), KPACK_SUCCESS);
	out = strndup((const char *)text.data, text.size);
	kp_json_fini(&json);
	facts_fini(&outer);
	return out;
}

static void check(const char *const *kernels, size_t n, const char *want)
{
	struct kp_object object = {0};
	struct kp_kernel *kernel;
	struct facts f = {0};
	char *json;

	for (size_t i = 0; i < n; i++)
		assert_int_equal(kp_object_add_kernel(&object, kp_span_str(kernels[i]),
						      &kernel, NULL),
				 KPACK_SUCCESS);
	signature_facts(&f, &object);
	json = json_of(&f);
	assert_string_equal(json, want);
	free(json);
	facts_fini(&f);
	kp_object_fini(&object);
}

TEST(test_none)
{
	static const char *const plain[] = {"_Z4vaddPfS_", "f_K", "my_kernel"};

	check(NULL, 0, "{}");
	check(plain, 3, "{}");
}

TEST(test_facts)
{
	static const char *const kernels[] = {"f_Kt1_LA1f16_1v8l0_p16g0i_A0u8_g0_I_7",
					      "plain", "g_Kt1_X"};

	check(kernels, 3,
	      "{\"signatures\":[{\"symbol\":\"f_Kt1_LA1f16_1v8l0_p16g0i_A0u8_g0_I_7\","
	      "\"function\":\"f\",\"convention\":\"cutile_python_v1\",\"python\":"
	      "\"KernelSignature([ListConstraint(ArrayConstraint(ct.float16, 1, "
	      "index_dtype=ct.int32, stride_lower_bound_incl=0, "
	      "alias_groups=[\\\"group0\\\"], may_alias_internally=True, "
	      "stride_divisible_by=8, base_addr_divisible_by=16), alias_groups=[], "
	      "elements_may_alias=False), ArrayConstraint(ct.uint8, 0, "
	      "index_dtype=ct.int32, stride_lower_bound_incl=None, "
	      "alias_groups=[\\\"group0\\\"], may_alias_internally=False), -7], "
	      "CallingConvention.cutile_python_v1())\",\"parameters\":["
	      "{\"kind\":\"list\",\"element\":{\"kind\":\"array\",\"dtype\":\"float16\","
	      "\"ndim\":1,\"index_dtype\":\"int32\",\"axes\":[{\"stride_divisible_by\":8,"
	      "\"stride_lower_bound_incl\":0}],\"base_addr_divisible_by\":16,"
	      "\"alias_groups\":[0],\"may_alias_internally\":true}},"
	      "{\"kind\":\"array\",\"dtype\":\"uint8\",\"ndim\":0,\"index_dtype\":"
	      "\"int32\",\"axes\":[],\"alias_groups\":[0]},"
	      "{\"kind\":\"constant\",\"type\":\"int\",\"value\":-7}],"
	      "\"arguments\":[{\"name\":\"p0\",\"type\":\"int64_t *\",\"bytes\":8,"
	      "\"meaning\":\"device pointer to the list: for each array 64-bit words "
	      "with "
	      "a device pointer, the shape and the strides\",\"parameter\":0,"
	      "\"words\":[\"pointer\",\"shape[0]\",\"stride[0]\"]},"
	      "{\"name\":\"p0.length\",\"type\":\"int32_t\",\"bytes\":4,"
	      "\"meaning\":\"arrays in the list\",\"parameter\":0},"
	      "{\"name\":\"p1\",\"type\":\"uint8_t *\",\"bytes\":8,\"meaning\":"
	      "\"device pointer to the array's data\",\"parameter\":1}]},"
	      "{\"symbol\":\"g_Kt1_X\",\"error\":\"offset 6: a parameter (S A L T D B I "
	      "F "
	      "C) is expected, not \\\"X\\\"\"}]}");
}

TEST(test_every_kind)
{
	static const char *const kernels[] = {
		"f_Kt3_T1B1_Da_zb_z1F3ff0000000000000_Cn__Cs__0a_z_Ce_m_zE_zA_z_Cd_f32"};

	check(kernels, 1,
	      "{\"signatures\":[{\"symbol\":\"f_Kt3_T1B1_Da_zb_z1F3ff0000000000000_Cn__"
	      "Cs__0a"
	      "_z_Ce_m_zE_zA_z_Cd_f32\",\"function\":\"f\",\"convention\":"
	      "\"cutile_python_v3\",\"python\":\"KernelSignature([TupleConstraint([True])"
	      ", "
	      "DataclassConstraint(a.b, [1.0]), None, '\\\\n', m.E.A, ct.float32], "
	      "CallingConvention.cutile_python_v3())\",\"parameters\":["
	      "{\"kind\":\"tuple\",\"items\":[{\"kind\":\"constant\",\"type\":\"bool\","
	      "\"value\":true}]},{\"kind\":\"dataclass\",\"module\":\"a\",\"qualname\":"
	      "\"b\",\"fields\":[{\"kind\":\"constant\",\"type\":\"float\",\"bits\":"
	      "\"3ff0000000000000\",\"value\":1.0}]},{\"kind\":\"constant\",\"type\":"
	      "\"none\"},"
	      "{\"kind\":\"constant\",\"type\":\"str\",\"value\":\"\\\\012\"},"
	      "{\"kind\":\"constant\",\"type\":\"enum\",\"module\":\"m\",\"qualname\":"
	      "\"E\",\"value\":\"A\"},{\"kind\":\"constant\",\"type\":\"dtype\","
	      "\"value\":\"float32\"}],\"arguments\":[]}]}");
}

/* Signatures that do not fit into the metadata are counted. */
TEST(test_many)
{
	struct kp_object object = {0};
	struct kp_kernel *kernel;
	struct facts f = {0};
	char *json;

	for (int i = 0; i < 2000; i++)
		assert_int_equal(kp_object_add_kernel(&object,
						      kp_span_str("f_Kt1_A2f32_3l0"),
						      &kernel, NULL),
				 KPACK_SUCCESS);
	signature_facts(&f, &object);
	json = json_of(&f);
	assert_has(json, "\"signatures_left_out\":1");
	assert_true(strlen(json) < 1 << 20);
	free(json);
	facts_fini(&f);
	kp_object_fini(&object);
}

/* Capture the printed text in a file. */
static void printed(const char *kernel, char *text, size_t size)
{
	FILE *file = tmpfile();
	int saved = dup(STDOUT_FILENO);
	ssize_t n;

	assert_non_null(file);
	fflush(stdout);
	dup2(fileno(file), STDOUT_FILENO);
	signature_print(kernel, "  ");
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	n = pread(fileno(file), text, size - 1, 0);
	assert_true(n >= 0);
	text[n] = '\0';
	fclose(file);
}

TEST(test_print)
{
	char text[2048];

	printed("plain", text, sizeof(text));
	assert_string_equal(text, "");
	printed("f_Kt1_Sf16_LA0i8", text, sizeof(text));
	assert_string_equal(
		text,
		"  KernelSignature([\n"
		"      ScalarConstraint(ct.float16),\n"
		"      ListConstraint(ArrayConstraint(ct.int8, 0, index_dtype=ct.int32, "
		"stride_lower_bound_incl=None, alias_groups=[], "
		"may_alias_internally=False), alias_groups=[], "
		"elements_may_alias=False),\n"
		"  ], CallingConvention.cutile_python_v1())\n"
		"  launch arguments:\n"
		"    __half p0: value\n"
		"    int64_t *p1: device pointer to the list: for each array 64-bit "
		"words "
		"with a device pointer, the shape and the strides (1 word each)\n"
		"    int32_t p1.length: arrays in the list\n");
	printed("f_Kt1_I64", text, sizeof(text));
	assert_string_equal(text, "  KernelSignature([\n"
				  "      64,\n"
				  "  ], CallingConvention.cutile_python_v1())\n"
				  "  launch arguments: none\n");
	printed("f_Kt1_\x1b", text, sizeof(text));
	assert_string_equal(text, "  no cuTile signature: offset 6: a parameter (S A L T "
				  "D B I F C) is expected, not \"\\033\"\n");
}

TEST(test_json)
{
	size_t left = SIGNATURE_JSON_MAX;
	json_t *json = signature_json("f_Kt3_Cs__00_z_I1", &left);
	json_t *same = json_pack("{s:s, s:s, s:s, s:s, s:[{s:s, s:s, s:s}, {s:s, s:s, "
				 "s:i}], s:[]}",
				 "symbol", "f_Kt3_Cs__00_z_I1", "function", "f",
				 "convention", "cutile_python_v3", "python",
				 "KernelSignature(['\\x00', 1], "
				 "CallingConvention.cutile_python_v3())",
				 "parameters", "kind", "constant", "type", "str", "value",
				 "\\000", "kind", "constant", "type", "int", "value", 1,
				 "arguments");

	assert_non_null(json);
	assert_true(json_equal(json, same));
	json_decref(json);
	json_decref(same);
	assert_null(signature_json("plain", &left));
	json = signature_json("f_Kt9", &left);
	assert_string_equal(
		json_string_value(json_object_get(json, "error")),
		"offset 3: calling convention t9 is not known, only t1 to t3");
	json_decref(json);
}

/*
 * JSON of lists of 64-dimensional arrays is two hundred times as long as the mangled
 * name.
 */
TEST(test_json_bounds)
{
	size_t left = SIGNATURE_JSON_MAX, n = 5;
	char name[8 + 9000 * 7] = "f_Kt1";
	json_t *json = signature_json("f_Kt1_I1", &left);

	assert_null(json_object_get(json, "error"));
	assert_in_range(left, SIGNATURE_JSON_MAX - 1000, SIGNATURE_JSON_MAX - 100);
	json_decref(json);
	for (size_t i = 0; i < 9000; i++, n += 7)
		memcpy(name + n, "_LA64i8", 7);
	json = signature_json(name, &left);
	assert_null(json_object_get(json, "parameters"));
	assert_string_equal(json_string_value(json_object_get(json, "error")),
			    "this object's signatures take more than 16 MiB");
	assert_string_equal(json_string_value(json_object_get(json, "symbol")), name);
	json_decref(json);
	assert_int_equal(left, 0);
	json = signature_json("f_Kt1_I1", &left);
	assert_non_null(json_object_get(json, "error"));
	json_decref(json);
}
