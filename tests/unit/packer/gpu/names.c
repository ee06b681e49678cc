/* SPDX-License-Identifier: MIT */
/* Names of groups of GPUs; what detect says of every processor is in tests/golden. */
#include "packer/gpu/names.h"
#include "tests/unit/unit.h"

TEST(groups_have_one_name)
{
	static const struct {
		const char *name, *group; /* NULL: no group */
	} rows[] = {
		{"gfx110x", "gfx110x"},
		{"gfx110X", "gfx110x"},
		{"gfx11_0", "gfx110x"},
		{"gfx11_5", "gfx115x"},
		{"gfx11XX", "gfx11"},
		{"gfx120x", "gfx12_0"},
		{"gfx90X", "gfx9_0"},
		{"gfx9", "gfx9"},
		{"gfx1100", NULL},
		{"gfx11x", NULL},
		{"gfx110xx", NULL},
		{"gfx", NULL},
		{"", NULL},
		{"gfx11-generic", NULL},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *name = gpu_group_name(kp_span_str(rows[i].name));

		if (!rows[i].group) {
			assert_null(name);
			continue;
		}
		assert_string_equal(name, rows[i].group);
	}
}
