/* SPDX-License-Identifier: MIT */
/* Keys of the objects of one container. */
#include "packer/pack/key_suffix.h"
#include <stdio.h>
#include "tests/unit/unit.h"

static struct key_suffixes names;

static void check(const char *arch, const char *kind, uint32_t ordinal, const char *want)
{
	char got[KEY_SUFFIX_MAX];

	assert_int_equal(key_suffix_choose(&names, arch, kp_span_str(kind), ordinal, got),
			 want != NULL);
	assert_string_equal(got, want ? want : "");
}

TEST(kinds_and_numbers_distinguish_objects)
{
	check("sm_80", "cuda", 3, "");
	check("sm_80", "cuda", 3, NULL); /* the same bytes */
	check("sm_80", "cuda", 4, "@cuda");
	check("sm_80", "hip", 5, "@hip");
	check("sm_80", "cuda", 6, "@cuda.2");
	check("sm_80", "hip", 4, NULL);
	check("sm_80", "hip", 7, "@hip.2");
	check("sm_90", "hip", 7, "");
	check("sm_90", "hip", 3, "@hip");
	key_suffixes_fini(&names);
	check("sm_90", "hip", 3, "");
	key_suffixes_fini(&names);
}

TEST(long_kinds_are_cut)
{
	char kind[100], want[KEY_SUFFIX_MAX];

	memset(kind, 'k', sizeof(kind));
	kind[99] = 0;
	snprintf(want, sizeof(want), "@%.40s", kind);
	check("gfx942", kind, 0, "");
	check("gfx942", kind, 1, want);
	kind[60] = 'x'; /* the same in the part that is shown */
	snprintf(want, sizeof(want), "@%.40s.2", kind);
	check("gfx942", kind, 2, want);
	key_suffixes_fini(&names);
}

TEST(what_means_something_in_keys_is_replaced)
{
	check("gfx942", "hip", 0, "");
	check("gfx942", "a/../b#c@d", 1, "@a____b_c_d");
	check("gfx942", "a/../b#c@e", 2, "@a____b_c_e");
	check("gfx942", "a/../b#c/d", 3, "@a____b_c_d.2"); /* same as the first one's */
	check("gfx942", "a____b_c_d.2", 5, "@a____b_c_d_2");
	check("gfx942", "k\n\xc3\xa9", 4, "@k___");
	key_suffixes_fini(&names);
}

TEST(numbers_go_on)
{
	char want[KEY_SUFFIX_MAX];

	check("generic", "bc", 0, "");
	check("generic", "bc", 1, "@bc");
	for (uint32_t i = 2; i < 20000; i++) {
		snprintf(want, sizeof(want), "@bc.%u", i);
		check("generic", "bc", i, want);
	}
	for (uint32_t i = 0; i < 20000; i++)
		check("generic", "bc", i, NULL);
	key_suffixes_fini(&names);
}
