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
		"{'a.so#2': {'gfx1100': {'ordinal': 0}}, "
		"'b': {'gfx1100': {'ordinal': 0, 'metadata': {'path': 'share/b'}}}, "
		"'rocblas/gfx1100/k': {'gfx1100': {'ordinal': 0}}}");
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

static void expect_fault_in(const struct kp_view_options *options, const char *path,
			    const char *fault)
{
	struct kp_entry_path p[KP_ENTRY_PATHS];
	char toc[9000];
	struct kpack_archive *a;

	snprintf(toc, sizeof(toc),
		 "{'k': {'gfx1100': {'ordinal': 0, 'metadata': {'path': '%s'}}}}", path);
	a = with_toc(toc);
	assert_int_equal(kp_entry_paths(a, 0, options, p), 2);
	expect_path(&p[1], KP_VIEW_PATH, path, fault);
	kp_archive_close(a);
}

static void expect_fault(const char *path, const char *fault)
{
	expect_fault_in(NULL, path, fault);
}

#define NO_PATH "it is no path inside the mount: "

TEST(test_faults)
{
	const struct kp_view_options bundles = {.bundles = true};
	char many[2 * 65 + 1], wide[300], huge[5000];

	for (size_t i = 0; i < sizeof(many); i++)
		many[i] = i % 2 ? '/' : 'x';
	many[sizeof(many) - 2] = '\0';
	memset(wide, 'x', sizeof(wide));
	wide[256] = '\0';
	memset(huge, 'x', sizeof(huge));
	huge[4097] = '\0';
	expect_fault("/x", NO_PATH "it has an empty component");
	expect_fault("x//y", NO_PATH "it has an empty component");
	expect_fault("x/", NO_PATH "it has an empty component");
	expect_fault("x/..", NO_PATH "it has a component . or ..");
	expect_fault(".", NO_PATH "it has a component . or ..");
	expect_fault(many, NO_PATH "it has more than 64 components");
	expect_fault(wide, NO_PATH "it has a component of more than 255 bytes");
	expect_fault(huge, NO_PATH "it has more than 4096 bytes");
	expect_fault("x\ny", NO_PATH "it is not UTF-8 without control bytes");
	expect_fault("toc", "toc and .kpackfs are the mount's own");
	expect_fault(".kpackfs/x", "toc and .kpackfs are the mount's own");
	expect_fault("tocs/.kpackfs", "");
	expect_fault("hipfb/x", "");
	expect_fault_in(&bundles, "hipfb/x", "hipfb is the mount's own");
	expect_fault_in(&bundles, "hipfb", "hipfb is the mount's own");
	expect_fault_in(&bundles, "hipfbs/hipfb", "");
}

TEST(test_arches)
{
	struct kp_choice chosen = {0};
	struct kp_view_options o = {.select = &chosen};

	assert_true(kp_view_selects(NULL, kp_span_str("gfx90a")));
	assert_true(kp_view_selects(&(struct kp_view_options){0}, kp_span_str("??")));
	assert_true(kp_view_selects(&o, kp_span_str("??")));
	assert_int_equal(kp_choice_add(&chosen, "gfx1100", NULL), KPACK_SUCCESS);
	assert_true(kp_view_selects(&o, kp_span_str("gfx11-generic")));
	assert_true(kp_view_selects(&o, kp_span_str("generic")));
	assert_false(kp_view_selects(&o, kp_span_str("gfx90a")));
	assert_false(kp_view_selects(&o, kp_span_str("no target")));
	kp_choice_fini(&chosen);
}
