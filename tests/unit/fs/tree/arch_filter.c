/* SPDX-License-Identifier: MIT */
/* Which archives have files for a selected GPU. */
#include "fs/tree/arch_filter.h"
#include "tests/unit/edition_builder.h"
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"

static const struct {
	const char *arch;
	bool served;
} cases[] = {
	{"gfx1100", true},       {"gfx1101", true},        {"gfx90a", true},
	{"gfx90a:xnack+", true}, {"gfx90a:xnack-", false}, {"gfx942", false},
};

TEST(test_served)
{
	struct origin *o = eb_archive(
		"/a.kpack", "{'x': {'gfx11-generic': {'ordinal': 0}, 'gfx90a:xnack+': "
			    "{'ordinal': 1}, 'generic': {'ordinal': 2}}}");

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct kp_choice a = {0};

		assert_true(arches_add(&a, cases[i].arch));
		if (kp_archive_serves(o->archive, &a.gpus[0]) != cases[i].served)
			fail_msg("%s", cases[i].arch);
		kp_choice_fini(&a);
	}
	origin_unref(o);
	for (int i = 0; i < 2; i++) {
		struct kp_choice a = {0};

		assert_false(arches_add(&a, i ? "gfx90" : "nonsense"));
		kp_choice_fini(&a);
	}
}

/*
 * Detected GPUs do not count as named: machines can have GPUs that are not used for
 * computing.
 */
TEST(test_named)
{
	struct kp_choice a = {0};

	assert_true(arches_add(&a, "auto,gfx1100"));
	assert_true(arches_add(&a, "gfx1100,gfx942"));
	assert_int_equal(a.count, 2);
	assert_int_equal(a.named, 2);
	kp_choice_fini(&a);
}

static void expect_line(const char *list, const char *want)
{
	struct kp_choice a = {0};
	char *line;

	assert_true(!list || arches_add(&a, list));
	line = arches_line_new(&a, ", ");
	if (want)
		assert_string_equal(line, want);
	else
		assert_null(line);
	free(line);
	kp_choice_fini(&a);
}

TEST(test_lines)
{
	expect_line(NULL, "all");
	expect_line("gfx942,all", "all");
	expect_line("gfx942", "gfx942");
	expect_line("gfx90a:xnack+:sramecc-,gfx942", "gfx90a:sramecc-:xnack+, gfx942");
	expect_line("auto", NULL);
}
