/* SPDX-License-Identifier: MIT */
/* Names of groups of GPUs; what detect says of every processor is in tests/golden. */
#include "packer/gpu/names.h"
#include "tests/unit/unit.h"
#include "core/target/target.h"

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

/* Every processor of ROCm's GPUs is in one row, and rows contain only processors. */
TEST(rows_are_of_the_processors)
{
	size_t rows, n;
	const struct gpu_subfamily *table = gpu_subfamily_table(&rows);
	const struct kp_processor *processors = kp_processor_table(&n);

	for (size_t i = 0; i < rows; i++)
		for (const char *const *m = table[i].members; *m; m++) {
			struct kp_span name = kp_span_str(*m);

			assert_non_null(kp_processor_by_name(name));
			assert_ptr_equal(gpu_subfamily_of(name), &table[i]);
			/* the series is the name with the stepping masked */
			assert_int_equal(name.size, strlen(table[i].series));
			assert_memory_equal(*m, table[i].series, name.size - 1);
		}
	for (size_t i = 0; i < n; i++) {
		const char *name = processors[i].name;

		if (strncmp(name, "gfx9", 4) == 0 || strncmp(name, "gfx1", 4) == 0)
			assert_true(strstr(name, "generic") ||
				    gpu_subfamily_of(kp_span_str(name)));
	}
	assert_null(gpu_subfamily_of(kp_span_str("gfx110")));
	assert_null(gpu_subfamily_of(kp_span_str(":xnack+")));
	assert_null(gpu_subfamily_of(kp_span_str("gfx11-generic")));
}
