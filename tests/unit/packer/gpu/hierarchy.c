/* SPDX-License-Identifier: MIT */
#include "packer/gpu/hierarchy.h"
#include "tests/unit/unit.h"
#include "core/target/target.h"

static const struct {
	const char *target, *name, *family, *series; /* name NULL: in no subfamily */
} targets[] = {
	{"gfx1151", "gfx115x", "gfx11", "gfx115X"},
	{"gfx1100", "gfx110x", "gfx11", "gfx110X"},
	{"gfx942", "gfx9_4", "gfx9", "gfx94X"},
	{"gfx942:xnack+", "gfx9_4", "gfx9", "gfx94X"},
	{"gfx950", "gfx9_5", "gfx9", "gfx95X"},
	{"gfx90a:sramecc+:xnack-", "gfx9_0", "gfx9", "gfx90X"},
	{"gfx908", "gfx9_0", "gfx9", "gfx90X"},
	{"gfx1201", "gfx12_0", "gfx12", "gfx120X"},
	{"gfx1250-strict", "gfx12_5", "gfx12", "gfx125X"},
	{"gfx1030", "gfx10_3", "gfx10", "gfx103X"},
	{"gfx1010", "gfx10_1", "gfx10", "gfx101X"},
	{"gfx11-generic", NULL, NULL, NULL},
	{"gfx110x", NULL, NULL, NULL},
	{"gfx1109", NULL, NULL, NULL},
	{"gfx110", NULL, NULL, NULL},
	{"gfx1100a", NULL, NULL, NULL},
	{"", NULL, NULL, NULL},
	{":xnack+", NULL, NULL, NULL},
	{"-strict", NULL, NULL, NULL},
};

TEST(targets_are_members)
{
	for (size_t i = 0; i < COUNT(targets); i++) {
		const struct gpu_subfamily *s =
			gpu_subfamily_of(kp_span_str(targets[i].target));

		if (!targets[i].name) {
			assert_null(s);
			continue;
		}
		assert_non_null(s);
		assert_string_equal(s->name, targets[i].name);
		assert_string_equal(s->family, targets[i].family);
		assert_string_equal(s->series, targets[i].series);
		assert_true(gpu_group_has(s->name, kp_span_str(targets[i].target)));
		assert_true(gpu_group_has(s->family, kp_span_str(targets[i].target)));
		assert_false(gpu_group_has("gfx8", kp_span_str(targets[i].target)));
	}
}

static const struct {
	const char *name, *group, *family; /* group NULL: no group */
} groups[] = {
	{"gfx110x", "gfx110x", "gfx11"},
	{"gfx110X", "gfx110x", "gfx11"},
	{"gfx11_0", "gfx110x", "gfx11"},
	{"gfx11_5", "gfx115x", "gfx11"},
	{"gfx11xx", "gfx11", "gfx11"},
	{"gfx11XX", "gfx11", "gfx11"},
	{"gfx120x", "gfx12_0", "gfx12"},
	{"gfx12_0", "gfx12_0", "gfx12"},
	{"gfx90X", "gfx9_0", "gfx9"},
	{"gfx94X", "gfx9_4", "gfx9"},
	{"gfx9", "gfx9", "gfx9"},
	{"gfx12", "gfx12", "gfx12"},
	{"gfx1100", NULL, NULL},
	{"gfx11x", NULL, NULL},
	{"gfx110xx", NULL, NULL},
	{"gfx", NULL, NULL},
	{"", NULL, NULL},
	{"gfx11-generic", NULL, NULL},
};

TEST(groups_have_one_name)
{
	for (size_t i = 0; i < COUNT(groups); i++) {
		const char *name = gpu_group_name(kp_span_str(groups[i].name));

		if (!groups[i].group) {
			assert_null(name);
			continue;
		}
		assert_non_null(name);
		assert_string_equal(name, groups[i].group);
		assert_string_equal(gpu_group_family(name), groups[i].family);
		assert_ptr_equal(name, gpu_group_name(kp_span_str(groups[i].group)));
	}
}

/*
 * Every processor of ROCm's GPUs is in exactly one row, and rows contain only processors.
 */
TEST(rows_are_of_the_processors)
{
	size_t rows, n;
	const struct gpu_subfamily *table = gpu_subfamily_table(&rows);
	const struct kp_processor *processors = kp_processor_table(&n);

	for (size_t i = 0; i < rows; i++)
		for (const char *const *m = table[i].members; *m; m++) {
			assert_non_null(kp_processor_by_name(kp_span_str(*m)));
			assert_ptr_equal(gpu_subfamily_of(kp_span_str(*m)), &table[i]);
			/* the series is the name with the stepping masked */
			assert_int_equal(strlen(*m), strlen(table[i].series));
			assert_memory_equal(*m, table[i].series, strlen(*m) - 1);
		}
	for (size_t i = 0; i < n; i++) {
		const char *name = processors[i].name;

		if (strncmp(name, "gfx9", 4) && strncmp(name, "gfx1", 4))
			continue;
		if (!strstr(name, "generic") && !gpu_subfamily_of(kp_span_str(name)))
			fail_msg("%s", name);
	}
}
