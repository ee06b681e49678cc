/* SPDX-License-Identifier: MIT */
#include "core/target/target.h"
#include "tests/unit/unit.h"
#include <stdio.h>

/* Every processor, by name; "x": xnack can be stated, "s": sramecc can be stated. */
static const struct {
	const char *name;
	unsigned mach;
	const char *features;
} processors[] = {
	{"r600", 0x01, ""},
	{"r630", 0x02, ""},
	{"rs880", 0x03, ""},
	{"rv670", 0x04, ""},
	{"rv710", 0x05, ""},
	{"rv730", 0x06, ""},
	{"rv770", 0x07, ""},
	{"cedar", 0x08, ""},
	{"cypress", 0x09, ""},
	{"juniper", 0x0a, ""},
	{"redwood", 0x0b, ""},
	{"sumo", 0x0c, ""},
	{"barts", 0x0d, ""},
	{"caicos", 0x0e, ""},
	{"cayman", 0x0f, ""},
	{"turks", 0x10, ""},
	{"gfx600", 0x20, ""},
	{"gfx601", 0x21, ""},
	{"gfx602", 0x3a, ""},
	{"gfx700", 0x22, ""},
	{"gfx701", 0x23, ""},
	{"gfx702", 0x24, ""},
	{"gfx703", 0x25, ""},
	{"gfx704", 0x26, ""},
	{"gfx705", 0x3b, ""},
	{"gfx801", 0x28, "x"},
	{"gfx802", 0x29, ""},
	{"gfx803", 0x2a, ""},
	{"gfx805", 0x3c, ""},
	{"gfx810", 0x2b, "x"},
	{"gfx900", 0x2c, "x"},
	{"gfx902", 0x2d, "x"},
	{"gfx904", 0x2e, "x"},
	{"gfx906", 0x2f, "xs"},
	{"gfx908", 0x30, "xs"},
	{"gfx909", 0x31, "x"},
	{"gfx90a", 0x3f, "xs"},
	{"gfx90c", 0x32, "x"},
	{"gfx940", 0x40, "xs"},
	{"gfx941", 0x4b, "xs"},
	{"gfx942", 0x4c, "xs"},
	{"gfx950", 0x4f, "xs"},
	{"gfx1010", 0x33, "x"},
	{"gfx1011", 0x34, "x"},
	{"gfx1012", 0x35, "x"},
	{"gfx1013", 0x42, "x"},
	{"gfx1030", 0x36, ""},
	{"gfx1031", 0x37, ""},
	{"gfx1032", 0x38, ""},
	{"gfx1033", 0x39, ""},
	{"gfx1034", 0x3e, ""},
	{"gfx1035", 0x3d, ""},
	{"gfx1036", 0x45, ""},
	{"gfx1100", 0x41, ""},
	{"gfx1101", 0x46, ""},
	{"gfx1102", 0x47, ""},
	{"gfx1103", 0x44, ""},
	{"gfx1150", 0x43, ""},
	{"gfx1151", 0x4a, ""},
	{"gfx1152", 0x55, ""},
	{"gfx1153", 0x58, ""},
	{"gfx1154", 0x57, ""},
	{"gfx1170", 0x5d, ""},
	{"gfx1171", 0x5e, ""},
	{"gfx1172", 0x5c, ""},
	{"gfx1200", 0x48, ""},
	{"gfx1201", 0x4e, ""},
	{"gfx1250", 0x49, ""},
	{"gfx1251", 0x5a, ""},
	{"gfx1310", 0x50, ""},
	{"gfx9-generic", 0x51, "x"},
	{"gfx9-4-generic", 0x5f, "xs"},
	{"gfx10-1-generic", 0x52, "x"},
	{"gfx10-3-generic", 0x53, ""},
	{"gfx11-generic", 0x54, ""},
	{"gfx11-7-generic", 0x62, ""},
	{"gfx12-generic", 0x59, ""},
	{"gfx12-5-generic", 0x5b, ""},
	{"gfx13-generic", 0x63, ""},
	{"gfx1250-strict", 0xeb, ""},
};

static bool has(size_t i, char feature)
{
	return strchr(processors[i].features, feature) != NULL;
}

TEST(every_processor_has_its_row)
{
	size_t count;

	kp_processor_table(&count);
	assert_int_equal(count, COUNT(processors));
	for (size_t i = 0; i < COUNT(processors); i++) {
		const struct kp_processor *row = kp_processor_by_mach(processors[i].mach);

		assert_non_null(row);
		assert_string_equal(row->name, processors[i].name);
		assert_int_equal(row->mach, processors[i].mach);
		assert_int_equal(row->xnack, has(i, 'x'));
		assert_int_equal(row->sramecc, has(i, 's'));
		assert_ptr_equal(row, kp_processor_by_name(kp_span_str(row->name)));
	}
}

TEST(table_is_in_order_and_reserved_numbers_are_free)
{
	static const unsigned reserved[] = {0,    0x11, 0x1f, 0x27,  0x4d, 0x56,
					    0x60, 0x61, 0x64, 0x100, 0x12c};
	size_t count;
	const struct kp_processor *row = kp_processor_table(&count);

	for (size_t i = 1; i < count; i++)
		assert_true(row[i - 1].mach < row[i].mach);
	for (size_t i = 0; i < COUNT(reserved); i++)
		assert_null(kp_processor_by_mach(reserved[i]));
	assert_null(kp_processor_by_name(kp_span_str("gfx")));
	assert_null(kp_processor_by_name(kp_span_str("")));
	assert_null(kp_processor_by_name(kp_span_str("gfx90a:xnack+")));
}

static const char *const aliases[][2] = {
	{"tahiti", "gfx600"},    {"pitcairn", "gfx601"}, {"verde", "gfx601"},
	{"hainan", "gfx602"},    {"oland", "gfx602"},    {"kaveri", "gfx700"},
	{"hawaii", "gfx701"},    {"kabini", "gfx703"},   {"mullins", "gfx703"},
	{"bonaire", "gfx704"},   {"carrizo", "gfx801"},  {"iceland", "gfx802"},
	{"tonga", "gfx802"},     {"fiji", "gfx803"},     {"polaris10", "gfx803"},
	{"polaris11", "gfx803"}, {"tongapro", "gfx805"}, {"stoney", "gfx810"},
};

static void assert_canonical(const char *text, const char *expected)
{
	char out[KP_TARGET_TEXT_MAX];

	kp_target_canonical(kp_span_str(text), out);
	assert_string_equal(out, expected);
}

static struct kp_target parsed(const char *text)
{
	struct kp_target t;
	struct kpackx_error why = {0};

	if (kp_target_parse(kp_span_str(text), &t, &why) != KPACK_SUCCESS)
		fail_msg("%s: %s", text, why.text);
	return t;
}

TEST(aliases_become_primary_names)
{
	for (size_t i = 0; i < COUNT(aliases); i++) {
		const struct kp_processor *row =
			kp_processor_by_name(kp_span_str(aliases[i][0]));

		assert_non_null(row);
		assert_string_equal(row->name, aliases[i][1]);
		assert_canonical(aliases[i][0], aliases[i][1]);
	}
	assert_canonical("carrizo:xnack+", "gfx801:xnack+");
	assert_canonical("stoney-xnack-", "gfx810:xnack-");
}

/* Each of the nine combinations of states, in both orders, for every processor. */
TEST(features_are_accepted_where_the_processor_has_them)
{
	static const char *const signs[] = {"", "-", "+"};

	for (size_t i = 0; i < COUNT(processors); i++) {
		for (size_t n = 0; n < 9; n++) {
			const char *s = signs[n / 3], *x = signs[n % 3];
			char sramecc[16] = "", xnack[16] = "", text[80], want[80];
			char got[KP_TARGET_TEXT_MAX];
			struct kp_target t;
			bool ok = (!*s || has(i, 's')) && (!*x || has(i, 'x'));

			if (*s)
				snprintf(sramecc, sizeof(sramecc), ":sramecc%s", s);
			if (*x)
				snprintf(xnack, sizeof(xnack), ":xnack%s", x);
			snprintf(text, sizeof(text), "%s%s%s", processors[i].name, xnack,
				 sramecc);
			snprintf(want, sizeof(want), "%s%s%s", processors[i].name,
				 sramecc, xnack);
			assert_int_equal(kp_target_parse(kp_span_str(text), &t, NULL),
					 ok ? KPACK_SUCCESS
					    : KPACK_ERROR_INVALID_ARGUMENT);
			if (!ok)
				continue;
			assert_int_equal(t.sramecc, n / 3);
			assert_int_equal(t.xnack, n % 3);
			kp_target_format(&t, got);
			assert_string_equal(got, want);
			assert_canonical(want, want);
		}
	}
}

static const char *const rejected[][2] = {
	{"", "no processor"},
	{":xnack+", "no processor"},
	{"gfx1100:xnack+", "has no \"xnack\""},
	{"gfx1100-xnack+", "has no \"xnack\""},
	{"gfx900:sramecc+", "has no \"sramecc\""},
	{"gfx900:xnack+:sramecc-", "has no \"sramecc\""},
	{"gfx9-generic:sramecc+", "has no \"sramecc\""},
	{"gfx11-generic:xnack-", "has no \"xnack\""},
	{"gfx1250:xnack+", "has no \"xnack\""},
	{"gfx1250:sramecc+", "has no \"sramecc\""},
	{"gfx1251:xnack-", "has no \"xnack\""},
	{"gfx12-5-generic:xnack+", "has no \"xnack\""},
	{"tonga:xnack+", "has no \"xnack\""},
	{"gfx90a:", "unknown feature \"\""},
	{"gfx90a::xnack+", "unknown feature \"\""},
	{"gfx90a:xnack+:", "unknown feature \"\""},
	{"gfx90a:xnack+-", "unknown feature \"\""},
	{"gfx90a:+", "unknown feature \"\""},
	{"gfx90a:cumode+", "unknown feature \"cumode\""},
	{"gfx90a:XNACK+", "unknown feature \"XNACK\""},
	{"gfx90a: xnack+", "unknown feature \" xnack\""},
	{"gfx90a:xnac+", "unknown feature \"xnac\""},
	{"gfx90a:xnackx+", "unknown feature \"xnackx\""},
	{"gfx90a:xnack", "no '+' or '-' after \"xnack\""},
	{"gfx90a-xnack", "no '+' or '-' after \"xnack\""},
	{"gfx90a:xnack:sramecc+", "no '+' or '-' after \"xnack\""},
	{"gfx90a:sramecc+:xnack", "no '+' or '-' after \"xnack\""},
	{"gfx90a:xnack+:xnack+", "repeated feature \"xnack\""},
	{"gfx90a:xnack+:xnack-", "repeated feature \"xnack\""},
	{"gfx90a-xnack+:xnack-", "repeated feature \"xnack\""},
	{"gfx90a:sramecc-:xnack-:sramecc-", "repeated feature \"sramecc\""},
	{"gfx90a:xnack++", "no ':' before \"+\""},
	{"gfx90a:xnack+sramecc+", "no ':' before \"sramecc+\""},
	{"gfx90a:xnack-sramecc+", "no ':' before \"sramecc+\""},
	{"GFX90A", "not in lower case"},
	{"Gfx1100", "not in lower case"},
	{"gfx90A", "not in lower case"},
	{"gfx11-Generic", "not in lower case"},
	{"gfx90a ", "not a processor name"},
	{" gfx90a", "not a processor name"},
	{"gfx90a+", "not a processor name"},
	{"gfx/90a", "not a processor name"},
	{"../gfx90a", "not a processor name"},
	{"gfx90a,gfx942", "not a processor name"},
	{"gfx\303\266", "not a processor name"},
	{"a2345678901234567890123456789012", "too long"},
};

TEST(what_clang_rejects_is_rejected_with_the_reason)
{
	for (size_t i = 0; i < COUNT(rejected); i++) {
		struct kpackx_error why = {0};
		struct kp_target t;

		assert_int_equal(kp_target_parse(kp_span_str(rejected[i][0]), &t, &why),
				 KPACK_ERROR_INVALID_ARGUMENT);
		assert_int_equal(why.code, KPACK_ERROR_INVALID_ARGUMENT);
		if (!strstr(why.text, rejected[i][1]))
			fail_msg("%s: %s", rejected[i][0], why.text);
		assert_canonical(rejected[i][0], rejected[i][0]);
	}
}

TEST(a_nul_is_no_part_of_a_name)
{
	static const uint8_t bytes[] = "gfx90a\0";
	struct kp_target t;
	struct kpackx_error why = {0};

	assert_int_equal(kp_target_parse((struct kp_span){bytes, 7}, &t, &why),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_has(why.text, "gfx90a\\000");
	assert_int_equal(kp_target_parse((struct kp_span){NULL, 0}, &t, NULL),
			 KPACK_ERROR_INVALID_ARGUMENT);
}

static const char *const canonical[][2] = {
	{"gfx90a", "gfx90a"},
	{"gfx90a:xnack+:sramecc-", "gfx90a:sramecc-:xnack+"},
	{"gfx90a-xnack+", "gfx90a:xnack+"},
	{"gfx90a-xnack-", "gfx90a:xnack-"},
	{"gfx90a-xnack--sramecc+", "gfx90a:sramecc+:xnack-"},
	{"gfx90a-xnack+:sramecc+", "gfx90a:sramecc+:xnack+"},
	{"gfx90a:xnack+-sramecc+", "gfx90a:sramecc+:xnack+"},
	{"gfx9-4-generic:xnack+:sramecc-", "gfx9-4-generic:sramecc-:xnack+"},
	{"gfx9-4-generic-xnack-", "gfx9-4-generic:xnack-"},
	{"gfx11-generic", "gfx11-generic"},
	{"gfx1250-strict", "gfx1250-strict"},
	/* not in the table: kept unchanged, with any feature */
	{"gfx1410:xnack+:sramecc+", "gfx1410:sramecc+:xnack+"},
	{"gfx99-5-generic-xnack+", "gfx99-5-generic:xnack+"},
	{"sm_100a", "sm_100a"},
	{"compute_90", "compute_90"},
	{"amdgcnspirv", "amdgcnspirv"},
	{"mach-0x99:xnack-", "mach-0x99:xnack-"},
	{"gfx90a-xnacks", "gfx90a-xnacks"},
	{"Future.1", "Future.1"},
	{"a234567890123456789012345678901:sramecc-:xnack-",
	 "a234567890123456789012345678901:sramecc-:xnack-"},
};

TEST(spellings_have_one_canonical_form)
{
	for (size_t i = 0; i < COUNT(canonical); i++) {
		parsed(canonical[i][0]);
		assert_canonical(canonical[i][0], canonical[i][1]);
		assert_canonical(canonical[i][1], canonical[i][1]);
	}
}

TEST(long_texts_that_are_no_target_are_cut)
{
	char text[100], out[KP_TARGET_TEXT_MAX];

	memset(text, 'x', sizeof(text));
	kp_target_canonical((struct kp_span){(uint8_t *)text, sizeof(text)}, out);
	assert_int_equal(strlen(out), KP_TARGET_TEXT_MAX - 1);
	kp_target_canonical((struct kp_span){NULL, 0}, out);
	assert_string_equal(out, "");
}

TEST(unknown_processors_have_no_row)
{
	struct kp_target t = parsed("gfx1410:xnack-");

	assert_null(t.known);
	assert_string_equal(t.processor, "gfx1410");
	assert_int_equal(t.xnack, KP_FEATURE_OFF);
	assert_int_equal(t.sramecc, KP_FEATURE_ANY);
	assert_string_equal(parsed("fiji").known->name, "gfx803");
}

TEST(equality_is_of_processor_and_features)
{
	struct kp_target a = parsed("gfx90a:sramecc+:xnack-");
	struct kp_target b = parsed("gfx90a-xnack-:sramecc+");
	struct kp_target c = parsed("gfx90a:xnack-");
	struct kp_target d = parsed("gfx942:sramecc+:xnack-");

	assert_true(kp_target_eq(&a, &b));
	assert_false(kp_target_eq(&a, &c));
	assert_false(kp_target_eq(&a, &d));
}

/*
 * first, second, whether the first serves the second, whether the second serves the first
 */
static const struct {
	const char *a, *b;
	bool ab, ba;
} compat[] = {
	{"gfx908", "gfx908", true, true},
	{"gfx908", "gfx908:xnack+", true, false},
	{"gfx908", "gfx908:sramecc-:xnack+", true, false},
	{"gfx908:xnack+", "gfx908:sramecc-:xnack+", true, false},
	{"gfx908:sramecc-", "gfx908:sramecc-:xnack+", true, false},
	{"gfx908:sramecc+", "gfx908:sramecc-:xnack+", false, false},
	{"gfx908:xnack+", "gfx908:xnack-", false, false},
	{"gfx908:xnack+", "gfx908:sramecc+", false, false},
	{"gfx908:sramecc+:xnack-", "gfx908:xnack-:sramecc+", true, true},
	{"gfx908", "gfx90a", false, false},
	{"gfx908", "gfx90a:xnack+", false, false},
	{"gfx11-generic", "gfx1100", false, false},
	{"gfx1250", "gfx1250-strict", false, false},
	{"tonga", "gfx802", true, true},
	{"gfx1410", "gfx1410:xnack-", true, false},
	{"sm_90", "sm_90", true, true},
	{"sm_90", "sm_90a", false, false},
};

TEST(compatibility_in_both_directions)
{
	for (size_t i = 0; i < COUNT(compat); i++) {
		struct kp_target a = parsed(compat[i].a), b = parsed(compat[i].b);

		assert_int_equal(kp_target_compatible(&a, &b), compat[i].ab);
		assert_int_equal(kp_target_compatible(&b, &a), compat[i].ba);
	}
}

/*
 * All nine feature states of one processor against each other, compared with LLVM's rule.
 */
TEST(compatibility_of_all_feature_states)
{
	for (unsigned i = 0; i < 9; i++) {
		for (unsigned j = 0; j < 9; j++) {
			struct kp_target a = parsed("gfx90a"), b = a;
			bool want = (i / 3 == 0 || i / 3 == j / 3) &&
				    (i % 3 == 0 || i % 3 == j % 3);

			a.sramecc = (enum kp_feature)(i / 3);
			a.xnack = (enum kp_feature)(i % 3);
			b.sramecc = (enum kp_feature)(j / 3);
			b.xnack = (enum kp_feature)(j % 3);
			assert_int_equal(kp_target_compatible(&a, &b), want);
			assert_int_equal(kp_target_eq(&a, &b), i == j);
		}
	}
}

static const struct {
	const char *gpu, *code;
	enum kp_fit fit;
} fits[] = {
	{"gfx90a", "gfx90a", KP_FIT_EXACT},
	{"gfx90a", "gfx90a:xnack+", KP_FIT_FEATURES},
	{"gfx90a", "gfx90a:xnack-", KP_FIT_FEATURES},
	{"gfx90a", "gfx90a:sramecc+:xnack-", KP_FIT_FEATURES},
	{"gfx90a:xnack+", "gfx90a", KP_FIT_FEATURES},
	{"gfx90a:xnack+", "gfx90a:xnack+", KP_FIT_EXACT},
	{"gfx90a:xnack+", "gfx90a:sramecc+", KP_FIT_FEATURES},
	{"gfx90a:xnack+", "gfx90a:sramecc-:xnack+", KP_FIT_FEATURES},
	{"gfx90a:xnack+", "gfx90a:xnack-", KP_FIT_NONE},
	{"gfx90a:xnack+", "gfx90a:sramecc+:xnack-", KP_FIT_NONE},
	{"gfx90a:sramecc-", "gfx90a:sramecc+", KP_FIT_NONE},
	{"gfx90a", "gfx908", KP_FIT_NONE},
	{"gfx1100", "gfx1100", KP_FIT_EXACT},
	{"gfx1100", "gfx1101", KP_FIT_NONE},
	{"gfx1100", "gfx11-generic", KP_FIT_GENERIC},
	{"gfx1100", "gfx12-generic", KP_FIT_NONE},
	{"gfx1100", "gfx10-3-generic", KP_FIT_NONE},
	{"gfx11-generic", "gfx11-generic", KP_FIT_EXACT},
	{"gfx11-generic", "gfx1100", KP_FIT_NONE},
	{"gfx11-generic", "amdgcnspirv", KP_FIT_SPIRV},
	{"gfx942", "gfx9-4-generic", KP_FIT_GENERIC},
	{"gfx942:xnack+", "gfx9-4-generic:xnack-", KP_FIT_NONE},
	{"gfx942:xnack+", "gfx9-4-generic:xnack+", KP_FIT_GENERIC},
	{"gfx942", "gfx9-generic", KP_FIT_NONE},
	{"gfx908", "gfx9-generic", KP_FIT_NONE},
	{"gfx1250", "gfx1250", KP_FIT_EXACT},
	{"gfx1250", "gfx1250-strict", KP_FIT_FEATURES},
	{"gfx1250-strict", "gfx1250", KP_FIT_FEATURES},
	{"gfx1250-strict", "gfx12-5-generic", KP_FIT_GENERIC},
	{"gfx1250-strict", "gfx1251", KP_FIT_NONE},
	{"gfx942", "generic", KP_FIT_NEUTRAL},
	{"sm_90", "generic", KP_FIT_NEUTRAL},
	{"generic", "generic", KP_FIT_EXACT},
	{"generic", "gfx942", KP_FIT_NONE},
	{"generic", "amdgcnspirv", KP_FIT_NONE},
	{"gfx942", "amdgcnspirv", KP_FIT_SPIRV},
	{"gfx942:xnack+", "amdgcnspirv", KP_FIT_SPIRV},
	{"amdgcnspirv", "amdgcnspirv", KP_FIT_EXACT},
	{"amdgcnspirv", "gfx942", KP_FIT_NONE},
	{"sm_90", "amdgcnspirv", KP_FIT_NONE},
	{"sm_90", "sm_90", KP_FIT_EXACT},
	{"sm_90", "compute_90", KP_FIT_NONE},
	{"sm_90", "sm_90a", KP_FIT_NONE},
	{"gfx9999", "gfx9999", KP_FIT_EXACT},
	{"gfx9999", "gfx9-generic", KP_FIT_NONE},
	{"gfx110X", "gfx1100", KP_FIT_NONE},
};

TEST(gpus_load_what_runs_on_them)
{
	for (size_t i = 0; i < COUNT(fits); i++) {
		struct kp_target gpu = parsed(fits[i].gpu), code = parsed(fits[i].code);

		if (kp_target_fit(&gpu, &code) != fits[i].fit)
			fail_msg("%s on %s: %d", fits[i].code, fits[i].gpu,
				 kp_target_fit(&gpu, &code));
		assert_int_equal(kp_target_loadable(&gpu, &code),
				 fits[i].fit != KP_FIT_NONE);
	}
}

static const struct {
	const char *target, *settings[KP_TARGET_SETTINGS];
} settings[] = {
	{"gfx1100", {"gfx1100"}},
	{"gfx900", {"gfx900:xnack-", "gfx900:xnack+"}},
	{"gfx90a:xnack+", {"gfx90a:sramecc-:xnack+", "gfx90a:sramecc+:xnack+"}},
	{"gfx90a:sramecc-", {"gfx90a:sramecc-:xnack-", "gfx90a:sramecc-:xnack+"}},
	{"gfx90a:sramecc-:xnack+", {"gfx90a:sramecc-:xnack+"}},
	{"gfx90a",
	 {"gfx90a:sramecc-:xnack-", "gfx90a:sramecc-:xnack+", "gfx90a:sramecc+:xnack-",
	  "gfx90a:sramecc+:xnack+"}},
	{"sm_90", {"sm_90"}},
	{"gfx1410:xnack-", {"gfx1410:xnack-"}},
};

TEST(unstated_features_are_on_or_off)
{
	for (size_t i = 0; i < COUNT(settings); i++) {
		struct kp_target t = parsed(settings[i].target), out[KP_TARGET_SETTINGS];
		size_t n = kp_target_settings(&t, out);
		char text[KP_TARGET_TEXT_MAX];

		for (size_t k = 0; k < n; k++) {
			assert_non_null(settings[i].settings[k]);
			kp_target_format(&out[k], text);
			assert_string_equal(text, settings[i].settings[k]);
		}
		assert_true(n == KP_TARGET_SETTINGS || !settings[i].settings[n]);
	}
}

static const char *const generics[][10] = {
	{"gfx9-generic", "gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"},
	{"gfx9-4-generic", "gfx940", "gfx941", "gfx942", "gfx950"},
	{"gfx10-1-generic", "gfx1010", "gfx1011", "gfx1012", "gfx1013"},
	{"gfx10-3-generic", "gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034",
	 "gfx1035", "gfx1036"},
	{"gfx11-generic", "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150",
	 "gfx1151", "gfx1152", "gfx1153", "gfx1154"},
	{"gfx11-7-generic", "gfx1170", "gfx1171", "gfx1172"},
	{"gfx12-generic", "gfx1200", "gfx1201"},
	{"gfx12-5-generic", "gfx1250", "gfx1251"},
	{"gfx13-generic", "gfx1310"},
};

static const char *listed_generic(const char *processor)
{
	for (size_t i = 0; i < COUNT(generics); i++)
		for (size_t j = 1; j < COUNT(generics[i]) && generics[i][j]; j++)
			if (strcmp(generics[i][j], processor) == 0)
				return generics[i][0];
	return NULL;
}

TEST(generic_targets_list_their_members)
{
	for (size_t i = 0; i < COUNT(generics); i++) {
		const char *const *m = kp_generic_members(kp_span_str(generics[i][0]));

		assert_non_null(m);
		for (size_t j = 1; j < COUNT(generics[i]) && generics[i][j]; j++)
			assert_string_equal(*m++, generics[i][j]);
		assert_null(*m);
	}
}

TEST(every_processor_has_its_generic_target_or_none)
{
	static const char *const invented[] = {
		"gfx110x-generic", "gfx10-generic", "",
		"gfx1155",         "gfx110",        "gfx11-generi"};

	for (size_t i = 0; i < COUNT(processors); i++) {
		const char *want = listed_generic(processors[i].name);
		const char *got = kp_processor_generic(kp_span_str(processors[i].name));

		if (!want)
			assert_null(got);
		else
			assert_string_equal(got, want);
		if (!strstr(processors[i].name, "-generic"))
			assert_null(kp_generic_members(kp_span_str(processors[i].name)));
	}
	for (size_t i = 0; i < COUNT(invented); i++) {
		assert_null(kp_processor_generic(kp_span_str(invented[i])));
		assert_null(kp_generic_members(kp_span_str(invented[i])));
	}
}

static const struct {
	uint8_t abi;
	uint32_t flags;
	const char *text;
} headers[] = {
	/* v3: one bit per feature */
	{1, 0x12f, "gfx906:sramecc-:xnack+"},
	{1, 0x02f, "gfx906:sramecc-:xnack-"},
	{1, 0x22f, "gfx906:sramecc+:xnack-"},
	{1, 0x33f, "gfx90a:sramecc+:xnack+"},
	{1, 0x02c, "gfx900:xnack-"},
	{1, 0x12c, "gfx900:xnack+"},
	{1, 0x22c, "gfx900:xnack-"},
	{1, 0x036, "gfx1030"},
	{1, 0x341, "gfx1100"},
	{1, 0x0ff, "mach-0xff"},
	{1, 0x1ff, "mach-0xff:xnack+"},
	{1, 0x2ff, "mach-0xff:sramecc+"},
	/* v4, v5, v6: two bits per feature */
	{2, 0x53f, "gfx90a"},
	{3, 0x53f, "gfx90a"},
	{4, 0x53f, "gfx90a"},
	{3, 0x63f, "gfx90a:xnack-"},
	{3, 0xb3f, "gfx90a:sramecc-:xnack+"},
	{4, 0xf4c, "gfx942:sramecc+:xnack+"},
	{4, 0xa4c, "gfx942:sramecc-:xnack-"},
	{2, 0xd2f, "gfx906:sramecc+"},
	{2, 0x92f, "gfx906:sramecc-"},
	{2, 0x03f, "gfx90a"},
	{2, 0x12c, "gfx900"},
	{2, 0x22c, "gfx900:xnack-"},
	{2, 0x32c, "gfx900:xnack+"},
	{2, 0xf2c, "gfx900:xnack+"},
	{4, 0x041, "gfx1100"},
	{4, 0x549, "gfx1250"},
	{4, 0xf49, "gfx1250"},
	{4, 0x55a, "gfx1251"},
	{4, 0x0100055b, "gfx12-5-generic"},
	{4, 0x01000054, "gfx11-generic"},
	{4, 0x01000151, "gfx9-generic"},
	{4, 0x0100065f, "gfx9-4-generic:xnack-"},
	{4, 0x000, "mach-0x00"},
	{4, 0x027, "mach-0x27"},
	{4, 0xb99, "mach-0x99:sramecc-:xnack+"},
	{4, 0x599, "mach-0x99"},
	{4, 0x010, "turks"},
};

TEST(elf_headers_name_their_target)
{
	for (size_t i = 0; i < COUNT(headers); i++) {
		char text[KP_TARGET_TEXT_MAX];
		struct kp_target t, again;

		assert_int_equal(kp_target_from_elf_flags(headers[i].abi,
							  headers[i].flags, &t, NULL),
				 KPACK_SUCCESS);
		kp_target_format(&t, text);
		assert_string_equal(text, headers[i].text);
		again = parsed(text);
		assert_true(kp_target_eq(&t, &again));
		assert_ptr_equal(t.known, again.known);
	}
}

TEST(every_mach_is_read_in_every_version)
{
	for (size_t i = 0; i < COUNT(processors); i++) {
		for (uint8_t abi = 1; abi <= 4; abi++) {
			struct kp_target t;

			assert_int_equal(kp_target_from_elf_flags(abi, processors[i].mach,
								  &t, NULL),
					 KPACK_SUCCESS);
			assert_string_equal(t.processor, processors[i].name);
			assert_int_equal(t.xnack, abi == 1 && has(i, 'x')
							  ? KP_FEATURE_OFF
							  : KP_FEATURE_ANY);
			assert_int_equal(t.sramecc, abi == 1 && has(i, 's')
							    ? KP_FEATURE_OFF
							    : KP_FEATURE_ANY);
		}
	}
}

TEST(other_abi_versions_are_unsupported)
{
	static const uint8_t versions[] = {0, 5, 6, 0x40, 255};
	struct kp_target t;

	for (size_t i = 0; i < COUNT(versions); i++) {
		struct kpackx_error why = {0};

		assert_int_equal(kp_target_from_elf_flags(versions[i], 0x53f, &t, &why),
				 KPACK_ERROR_NOT_IMPLEMENTED);
		assert_int_equal(why.code, KPACK_ERROR_NOT_IMPLEMENTED);
		assert_has(why.text, "ABI version");
	}
}

static const char *const entry_ids[][4] = {
	{"hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc-:xnack+", "hipv4", "amdgcn-amd-amdhsa",
	 "gfx90a:sramecc-:xnack+"},
	{"hip-amdgcn-amd-amdhsa--gfx900:xnack+", "hip", "amdgcn-amd-amdhsa",
	 "gfx900:xnack+"},
	{"hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", "hipv4", "amdgcn-amd-amdhsa",
	 "gfx90a:xnack-"},
	{"hipv4-amdgcn-amd-amdhsa--gfx9-4-generic:xnack+:sramecc-", "hipv4",
	 "amdgcn-amd-amdhsa", "gfx9-4-generic:xnack+:sramecc-"},
	{"hip-amdgcn-amd-amdhsa-gfx900", "hip", "amdgcn-amd-amdhsa", "gfx900"},
	{"hip-amdgcn-amd-amdhsa-gfx90a:xnack-", "hip", "amdgcn-amd-amdhsa",
	 "gfx90a:xnack-"},
	{"hip-amdgcn-amd-amdhsa-gfx11-generic", "hip", "amdgcn-amd-amdhsa",
	 "gfx11-generic"},
	{"hip-amdgcn-amd-amdhsa-fiji", "hip", "amdgcn-amd-amdhsa", "fiji"},
	{"hip-amdgcn-amd-amdhsa-carrizo:xnack+", "hip", "amdgcn-amd-amdhsa",
	 "carrizo:xnack+"},
	{"hip-amdgcn-amd-amdhsa-unknown-gfx1100", "hip", "amdgcn-amd-amdhsa-unknown",
	 "gfx1100"},
	{"hip-amdgcn-amd-amdhsa-unknown-gfx11-generic", "hip",
	 "amdgcn-amd-amdhsa-unknown", "gfx11-generic"},
	{"hip-amdgcn-amd-amdhsa-unknown-", "hip", "amdgcn-amd-amdhsa-unknown", ""},
	{"hip-amdgcn-amd-amdhsa-unknown", "hip", "amdgcn-amd-amdhsa-unknown", ""},
	{"hip-amdgcn-amd-amdhsa--", "hip", "amdgcn-amd-amdhsa", ""},
	{"hip-amdgcn-amd-amdhsa-", "hip", "amdgcn-amd-amdhsa", ""},
	{"hip-amdgcn-amd-amdhsa", "hip", "amdgcn-amd-amdhsa", ""},
	{"hipv4-amdgcn-amd-amdhsa--future99", "hipv4", "amdgcn-amd-amdhsa", "future99"},
	{"hcc-amdgcn--amdhsa-gfx803", "hcc", "amdgcn--amdhsa", "gfx803"},
	{"openmp-amdgcn-amd-amdhsa--gfx906:sramecc+:xnack+", "openmp",
	 "amdgcn-amd-amdhsa", "gfx906:sramecc+:xnack+"},
	{"openmp-nvptx64-nvidia-cuda--sm_80", "openmp", "nvptx64-nvidia-cuda", "sm_80"},
	{"openmp-nvptx64-nvidia-cuda-unknown-sm_80", "openmp",
	 "nvptx64-nvidia-cuda-unknown", "sm_80"},
	{"openmp-nvptx64-nvidia-cuda-sm_80", "openmp", "nvptx64-nvidia-cuda", "sm_80"},
	{"openmp-nvptx64-nvidia-cuda-compute_90", "openmp", "nvptx64-nvidia-cuda",
	 "compute_90"},
	{"hip-spirv64-amd-amdhsa--amdgcnspirv", "hip", "spirv64-amd-amdhsa",
	 "amdgcnspirv"},
	{"hip-spirv64-amd-amdhsa-unknown-amdgcnspirv", "hip",
	 "spirv64-amd-amdhsa-unknown", "amdgcnspirv"},
	{"hip-spirv64-amd-amdhsa-amdgcnspirv", "hip", "spirv64-amd-amdhsa",
	 "amdgcnspirv"},
	{"hip-spirv64-amd-amdhsa--generic", "hip", "spirv64-amd-amdhsa", "generic"},
	{"hip-spirv64-amd-amdhsa-generic", "hip", "spirv64-amd-amdhsa", "generic"},
	{"host-x86_64-unknown-linux-gnu-", "host", "x86_64-unknown-linux-gnu", ""},
	{"host-x86_64-unknown-linux-gnu", "host", "x86_64-unknown-linux-gnu", ""},
	{"host-x86_64-unknown-linux", "host", "x86_64-unknown-linux", ""},
	{"host-x86_64-unknown-linux-", "host", "x86_64-unknown-linux", ""},
	{"host-x86_64-unknown-linux--", "host", "x86_64-unknown-linux", ""},
	{"host-x86_64-pc-linux-gnu-", "host", "x86_64-pc-linux-gnu", ""},
	{"host-x86_64-pc-windows-msvc-", "host", "x86_64-pc-windows-msvc", ""},
	{"host-aarch64-unknown-linux-gnu-", "host", "aarch64-unknown-linux-gnu", ""},
	{"host-", "host", "", ""},
	{"hip-amdgcn", "hip", "amdgcn", ""},
	{"hip-amdgcn-amd", "hip", "amdgcn-amd", ""},
	{"hip----", "hip", "--", ""},
};

TEST(entry_ids_are_split_in_every_spelling)
{
	for (size_t i = 0; i < COUNT(entry_ids); i++) {
		struct kp_entry_id e;

		assert_true(kp_entry_id_parse(kp_span_str(entry_ids[i][0]), &e));
		if (!kp_span_is(e.kind, entry_ids[i][1]) ||
		    !kp_span_is(e.triple, entry_ids[i][2]) ||
		    !kp_span_is(e.target, entry_ids[i][3]))
			fail_msg("%s: \"%.*s\" \"%.*s\" \"%.*s\"", entry_ids[i][0],
				 (int)e.kind.size, e.kind.data, (int)e.triple.size,
				 e.triple.data, (int)e.target.size, e.target.data);
		assert_int_equal(kp_entry_id_is_host(&e),
				 strcmp(entry_ids[i][1], "host") == 0);
	}
}

TEST(what_is_no_entry_id)
{
	static const char *const texts[] = {"", "host", "-", "-amdgcn-amd-amdhsa--gfx900",
					    "gfx900"};
	struct kp_entry_id e;

	for (size_t i = 0; i < COUNT(texts); i++)
		assert_false(kp_entry_id_parse(kp_span_str(texts[i]), &e));
	assert_false(kp_entry_id_parse((struct kp_span){NULL, 0}, &e));
	assert_true(kp_entry_id_parse(kp_span_str("hosts-x86_64"), &e));
	assert_false(kp_entry_id_is_host(&e));
}

/* --- the public call ----------------------------------------------------------------- */

TEST(the_generic_target_of_a_target)
{
	static const struct {
		const char *target, *generic; /* NULL: none */
	} cases[] = {
		{"gfx1100", "gfx11-generic"},
		{"gfx1201", "gfx12-generic"},
		{"gfx1035", "gfx10-3-generic"},
		{"gfx1012:xnack+", "gfx10-1-generic:xnack+"},
		{"gfx942:xnack+", "gfx9-4-generic:xnack+"},
		{"gfx942:xnack-:sramecc+", "gfx9-4-generic:sramecc+:xnack-"},
		{"gfx900:xnack-", "gfx9-generic:xnack-"},
		{"gfx906:sramecc+:xnack-", "gfx9-generic:xnack-"},
		{"gfx906:sramecc+", "gfx9-generic"},
		{"amdgcn-amd-amdhsa--gfx950", "gfx9-4-generic"},
		{"amdgcn-amd-amdhsa--gfx90c:xnack+", "gfx9-generic:xnack+"},
		{"gfx90a:xnack+", NULL},
		{"gfx908", NULL},
		{"gfx803", NULL},
		{"tonga", NULL},
		{"gfx9999", NULL},
		{"gfx11-generic", NULL},
		{"sm_90", NULL},
		{"generic", NULL},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char out[64] = "untouched";
		kpack_error_t err =
			kpackx_generic_target(cases[i].target, out, sizeof(out));

		if (err !=
		    (cases[i].generic ? KPACK_SUCCESS : KPACK_ERROR_ARCH_NOT_FOUND))
			fail_msg("%s: %d", cases[i].target, (int)err);
		assert_string_equal(out,
				    cases[i].generic ? cases[i].generic : "untouched");
	}
}

TEST(generic_targets_need_room)
{
	static const char *const wrong[] = {
		"",        "gfx942:xnack",  "gfx1100:xnack+", "GFX942",
		":xnack+", "gfx942:other+", "gfx942 ",        "amdgcn-amd-amdhsa--",
	};
	static const char want[] = "gfx9-4-generic:sramecc+:xnack-";
	char out[64] = "untouched";

	for (size_t i = 0; i < COUNT(wrong); i++)
		assert_int_equal(kpackx_generic_target(wrong[i], out, sizeof(out)),
				 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpackx_generic_target(NULL, out, sizeof(out)),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpackx_generic_target("gfx942", NULL, 64),
			 KPACK_ERROR_INVALID_ARGUMENT);
	for (size_t n = 0; n < sizeof(want); n++)
		assert_int_equal(kpackx_generic_target("gfx942:sramecc+:xnack-", out, n),
				 KPACK_ERROR_INVALID_ARGUMENT);
	assert_string_equal(out, "untouched");
	assert_int_equal(
		kpackx_generic_target("gfx942:sramecc+:xnack-", out, sizeof(want)),
		KPACK_SUCCESS);
	assert_string_equal(out, want);
}
