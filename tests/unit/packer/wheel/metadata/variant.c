/* SPDX-License-Identifier: MIT */
#include "packer/wheel/metadata/variant.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"

static const struct {
	const char *arch, *value;
} pairs[] = {
	{"gfx942", "gfx942"},
	{"gfx90a:xnack+", "gfx90a.xnack_on"},
	{"gfx90a:sramecc-:xnack+", "gfx90a.sramecc_off.xnack_on"},
	{"gfx9-4-generic", "gfx9_4_generic"},
	{"gfx9-4-generic:sramecc+", "gfx9_4_generic.sramecc_on"},
	{"gfx1250-strict", "gfx1250_strict"},
};

TEST(both_ways)
{
	char text[VARIANT_TEXT_MAX], back[KP_TARGET_TEXT_MAX];

	for (size_t i = 0; i < COUNT(pairs); i++) {
		assert_true(variant_escape(pairs[i].arch, text));
		assert_string_equal(text, pairs[i].value);
		assert_true(variant_unescape(text, back));
		assert_string_equal(back, pairs[i].arch);
		assert_true(variant_label_ok(text));
	}
}

TEST(every_processor)
{
	static const char *const features[] = {"", ":xnack+", ":xnack-", ":sramecc+",
					       ":sramecc-:xnack-"};
	char arch[128], text[VARIANT_TEXT_MAX], back[KP_TARGET_TEXT_MAX];
	size_t n;
	const struct kp_processor *table = kp_processor_table(&n);

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < COUNT(features); k++) {
			snprintf(arch, sizeof(arch), "%s%s", table[i].name, features[k]);
			assert_true(variant_escape(arch, text));
			assert_true(variant_unescape(text, back));
			assert_string_equal(back, arch);
		}
}

/* Texts that would be ambiguous are refused. */
TEST(refused)
{
	static const char *const arches[] = {"sm_90", "gfx9.0",       "GFX942",
					     "",      "gfx942:xnack", "gfx90a:xn-ack+",
					     "x:+",   "gfx 1"};
	static const char *const values[] = {"",
					     ".",
					     "gfx90a.",
					     "gfx90a.xnack",
					     "gfx90a.xnack_of",
					     "gfx90a._on",
					     "GFX",
					     "gfx90a.xnack_on_off",
					     "a+b"};
	char text[VARIANT_TEXT_MAX], back[KP_TARGET_TEXT_MAX], huge[200];

	for (size_t i = 0; i < COUNT(arches); i++)
		assert_false(variant_escape(arches[i], text));
	for (size_t i = 0; i < COUNT(values); i++)
		assert_false(variant_unescape(values[i], back));
	memset(huge, 'a', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	assert_false(variant_escape(huge, text));
	assert_false(variant_unescape(huge, back));
	assert_false(variant_label_ok(""));
	assert_false(variant_label_ok("null"));
	assert_false(variant_label_ok("a-b"));
}
