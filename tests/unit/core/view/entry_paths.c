/* SPDX-License-Identifier: MIT */
/* A view treats an entry as the path policy says. */
#include "core/view/entry_paths.h"
#include "tests/unit/view_builder.h"
#include <stdlib.h>
#include <string.h>

static void expect_path(const struct kp_entry_path *p, enum kp_view_kind kind,
			const char *text, const char *fault)
{
	assert_int_equal(p->kind, kind);
	if (!kp_span_is(p->text, text))
		fail_msg("%.*s is not %s", (int)p->text.size, (const char *)p->text.data,
			 text);
	assert_string_equal(p->fault, fault);
}

TEST(test_kinds)
{
	struct kpack_archive *a = with_toc(
		"{'a.so#2': {'gfx1100': @0}, 'b': {'gfx1100': {'ordinal': 0, 'metadata': "
		"{'path': 'share/b'}}}, 'rocblas/gfx1100/k': {'gfx1100': @0}}");
	struct kp_entry_path p[KP_ENTRY_PATHS];

	assert_int_equal(kp_entry_paths(a, 0, NULL, p), 1);
	expect_path(&p[0], KP_VIEW_TOC, "toc/a.so/gfx1100#2.hsaco", "");
	assert_int_equal(kp_entry_paths(a, 1, NULL, p), 2);
	expect_path(&p[0], KP_VIEW_TOC_ALSO, "toc/b/gfx1100.hsaco", "");
	expect_path(&p[1], KP_VIEW_PATH, "share/b", "");
	assert_int_equal(kp_entry_paths(a, 2, NULL, p), 2);
	expect_path(&p[0], KP_VIEW_TOC, "toc/rocblas/gfx1100/k/gfx1100.hsaco", "");
	expect_path(&p[1], KP_VIEW_LEGACY, "rocblas/library/gfx1100/k.co", "");
	kp_archive_close(a);
}

#define NO_PATH "it is no path inside the mount: "

TEST(test_faults)
{
	static char many[130], wide[257], huge[4098];
	static const struct {
		const char *path, *fault;
		bool bundles;
	} cases[] = {
		{"/x", NO_PATH "it has an empty component", false},
		{"x//y", NO_PATH "it has an empty component", false},
		{"x/..", NO_PATH "it has a component . or ..", false},
		{many, NO_PATH "it has more than 64 components", false},
		{wide, NO_PATH "it has a component of more than 255 bytes", false},
		{huge, NO_PATH "it has more than 4096 bytes", false},
		{"x\ny", NO_PATH "it is not UTF-8 without control bytes", false},
		{"toc", "toc and .kpackfs are the mount's own", false},
		{".kpackfs/x", "toc and .kpackfs are the mount's own", false},
		{"tocs/.kpackfs", "", false},
		{"hipfb/x", "", false},
		{"hipfb/x", "hipfb is the mount's own", true},
		{"hipfb", "hipfb is the mount's own", true},
		{"hipfbs/hipfb", "", true},
	};

	for (size_t i = 0; i < sizeof(many) - 1; i++)
		many[i] = i % 2 ? '/' : 'x';
	memset(wide, 'x', sizeof(wide) - 1);
	memset(huge, 'x', sizeof(huge) - 1);
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct kp_view_options options = {.bundles = cases[i].bundles};
		struct kp_entry_path p[KP_ENTRY_PATHS];
		char toc[9000];
		struct kpack_archive *a;

		snprintf(toc, sizeof(toc),
			 "{'k': {'gfx1100': {'ordinal': 0, 'metadata': {'path': '%s'}}}}",
			 cases[i].path);
		a = with_toc(toc);
		assert_int_equal(kp_entry_paths(a, 0, &options, p), 2);
		expect_path(&p[1], KP_VIEW_PATH, cases[i].path, cases[i].fault);
		kp_archive_close(a);
	}
}
