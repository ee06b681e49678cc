/* SPDX-License-Identifier: MIT */
/* The contents of files: which are the same, and what they keep open. */
#include "fs/tree/bundle.h"
#include "tests/unit/edition_builder.h"
#include <stdlib.h>
#include "tests/unit/unit.h"

static const struct kp_choice every_arch;

/* An edition with bundles of one archive with this TOC. */
static struct edition *edition_of(const char *toc)
{
	struct edition_options options = {.arches = &every_arch,
					  .look = {.uid = (uid_t)-1, .gid = (gid_t)-1},
					  .bundles = true};
	struct holdings h = {0};
	struct edition *e;

	assert_true(holdings_add(&h, eb_archive("a.kpack", toc)));
	e = edition_new(&h, &options, NULL);
	assert_non_null(e);
	return e;
}

/* The first file that is a bundle, or that is none. */
static uint32_t file_of(const struct edition *e, bool bundle)
{
	for (uint32_t f = 0; f < kp_view_file_count(e->view); f++)
		if (kp_view_bundle(e->view, f, &(struct kp_view_bundle){0}) == bundle)
			return f;
	fail_msg("no such file");
	return 0;
}

static bool same_files(const struct edition *a, bool a_bundle, const struct edition *b,
		       bool b_bundle)
{
	struct file_content c;
	bool same;

	assert_true(edition_file(a, file_of(a, a_bundle), &c));
	same = file_content_same(&c, b->view, file_of(b, b_bundle));
	file_content_unref(&c);
	return same;
}

#define X(o) "{'x#0': {'gfx90a': {'ordinal': " o "}}}"

TEST(what_is_the_same)
{
	struct edition *a = edition_of(X("0")), *equal = edition_of(X("0")),
		       *bytes = edition_of(X("1")), /* the header is the same */
			       *size = edition_of(X("2")),
		       *more = edition_of("{'x#0': {'gfx90a': {'ordinal': 0}, 'gfx942': "
					  "{'ordinal': 0}}}");

	assert_true(same_files(a, true, a, true));
	assert_true(same_files(a, false, a, false));
	assert_true(same_files(a, true, equal, true));
	assert_false(same_files(a, true, bytes, true));
	assert_false(same_files(a, true, size, true));
	assert_false(same_files(a, true, more, true));
	assert_false(same_files(more, true, a, true));
	/* an entry is not the bundle of it alone */
	assert_false(same_files(a, true, a, false));
	assert_false(same_files(a, false, a, true));
	edition_unref(a);
	edition_unref(equal);
	edition_unref(bytes);
	edition_unref(size);
	edition_unref(more);
}

TEST(a_bundle_outlives_its_edition)
{
	struct edition *e = edition_of(X("0"));
	struct origin *o = origin_ref(e->holdings.origins[0]);
	struct file_content c;
	char bytes[5] = "";

	assert_true(edition_file(e, file_of(e, true), &c));
	edition_unref(e);
	file_content_ref(&c);
	file_content_unref(&c);
	assert_int_equal(o->refs, 2);
	assert_true(kp_span_starts(c.bundle->header, "__CLANG_OFFLOAD_BUNDLE__", 24));
	assert_int_equal(file_content_size(&c), c.bundle->parts[0].offset + 4);
	assert_int_equal(kp_archive_read(c.bundle->parts[0].what.origin->archive,
					 c.bundle->parts[0].what.entry, bytes, &eb_why),
			 0);
	assert_string_equal(bytes, "aaaa");
	file_content_unref(&c);
	assert_int_equal(o->refs, 1);
	origin_unref(o);
	file_content_unref(&(struct file_content){0});
}
