/* SPDX-License-Identifier: MIT */
/* The texts about paths that are missing and about entries that are shown. */
#include "fs/control/missing_text.h"
#include "fs/control/entries_text.h"
#include "fs/base/log.h"
#include "tests/unit/edition_builder.h"
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"

static const struct kp_choice every_arch;

/*
 * The text of missing paths, without the line for the archive that every edition refuses.
 */
static char *missing(const struct edition *e, const struct kp_choice *arches,
		     const char *subdir)
{
	static const char refused[] = "/z.kpack\trefused: made\\011up\n";
	char *text = NULL, *end;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	assert_true(missing_put(f, e, arches, subdir));
	fclose(f);
	end = strstr(text, refused);
	assert_non_null(end);
	assert_string_equal(end, refused);
	*end = '\0';
	return text;
}

static void expect_missing(struct origin *one, struct origin *other,
			   const struct kp_choice *arches, const char *subdir,
			   const char *want)
{
	struct edition *e = eb_edition(one, other, arches, subdir);
	char *have = missing(e, arches, subdir);

	assert_string_equal(have, want);
	free(have);
	edition_unref(e);
}

TEST(test_nothing)
{
	expect_missing(eb_archive("/a.kpack", "{'x': {'gfx1100': {'ordinal': 0}}, 'y#0': "
					      "{'gfx1100': {'ordinal': 0}}}"),
		       NULL, &every_arch, NULL, "");
}

TEST(test_bad_names)
{
	expect_missing(
		eb_archive("/a.kpack",
			   "{'a/../b': {'gfx1100': {'ordinal': 0}}, "
			   "'c': {'gfx1100': {'ordinal': 1, 'metadata': {'path': "
			   "'toc/d'}}}, "
			   "'e': {'gfx1100': {'ordinal': 1, 'metadata': {'path': "
			   "'/f\\n'}}}, "
			   "'g': {'gfx/1100': {'ordinal': 2}}, "
			   "'h': {'gfx1100': {'ordinal': 2, 'metadata': {'path': "
			   "''}}}}"),
		NULL, &every_arch, NULL,
		"a/../b\t/a.kpack: the key is no path: it has a component . or ..\n"
		"toc/d\t/a.kpack: toc and .kpackfs are the mount's own\n"
		"/f\\134n\t/a.kpack: it is no path inside the mount: it has an empty "
		"component\n"
		"g\t/a.kpack: architecture and type give no file name\n"
		"h\t/a.kpack: metadata.path is empty\n");
}

TEST(test_refused_entries)
{
	expect_missing(
		eb_archive("/a.kpack", "{'lib/x#3': {'gfx1100': {'ordinal': 77}}, "
				       "'y': {'gfx1100': {'ordinal': 0}}}"),
		NULL, &every_arch, NULL,
		"toc/lib/x/gfx1100#3.*\t/a.kpack: refused: toc: lib/x#3 gfx1100: ordinal "
		"77 of 3 blobs\n");
}

/* A conflict names the first entry; other names of the same content do not conflict. */
TEST(test_conflicts)
{
	expect_missing(
		eb_archive("/a.kpack", "{'x': {'gfx1100': {'ordinal': 0}}, "
				       "'y': {'gfx1100': {'ordinal': 1, 'metadata': "
				       "{'path': 'p'}}}, "
				       "'z': {'gfx1100': {'ordinal': 1, 'metadata': "
				       "{'path': 'p'}}}}"),
		eb_archive("/b.kpack", "{'q': {'gfx1100': {'ordinal': 1, 'metadata': "
				       "{'path': 'p'}}}, "
				       "'r': {'gfx1100': {'ordinal': 1, 'metadata': "
				       "{'path': 'p/below'}}}, "
				       "'x': {'gfx1100': {'ordinal': 1}}}"),
		&every_arch, NULL,
		"p\t/a.kpack: a directory has this name\n"
		"p\t/a.kpack: a directory has this name\n"
		"p\t/b.kpack: a directory has this name\n"
		"toc/x/gfx1100.hsaco\t/b.kpack: other content of /a.kpack comes first: x "
		"gfx1100\n");
}

TEST(test_arches)
{
	struct kp_choice chosen = {0};

	assert_true(arches_add(&chosen, "gfx942,gfx1100"));
	expect_missing(
		eb_archive("/a.kpack",
			   "{'x': {'gfx90a': {'ordinal': 0, 'metadata': {'path': 'p'}}, "
			   "'gfx1100': {'ordinal': 1, 'metadata': {'path': 'p'}}}}"),
		NULL, &chosen, NULL,
		"toc/x/gfx90a.hsaco\tarchitecture gfx90a is not for arch=gfx942,gfx1100\n"
		"p\tarchitecture gfx90a is not for arch=gfx942,gfx1100\n");
	kp_choice_fini(&chosen);
}

TEST(test_subdir)
{
	static const char toc[] =
		"{'x': {'gfx1100': {'ordinal': 0, 'metadata': {'path': 'lib/p'}}}, "
		"'y': {'gfx1100': {'ordinal': 1, 'metadata': {'path': "
		"'lib/.kpackfs/q'}}}, "
		"'z': {'gfx1100': {'ordinal': 2, 'metadata': {'path': 'libs'}}}}";

	expect_missing(eb_archive("/a.kpack", toc), NULL, &every_arch, "lib",
		       "toc/x/gfx1100.hsaco\tnot below subdir=lib\n"
		       "toc/y/gfx1100.hsaco\tnot below subdir=lib\n"
		       "lib/.kpackfs/q\tsubdir=lib has the mount's own .kpackfs\n"
		       "toc/z/gfx1100.hsaco\tnot below subdir=lib\n"
		       "libs\tnot below subdir=lib\n");
	expect_missing(eb_archive("/a.kpack", toc), NULL, &every_arch, "",
		       "toc/x/gfx1100.hsaco\tsubdir=. has no toc\n"
		       "toc/y/gfx1100.hsaco\tsubdir=. has no toc\n"
		       "toc/z/gfx1100.hsaco\tsubdir=. has no toc\n");
}

/* No view contains the archives here, yet each path is explained. */
TEST(test_empty_subdir)
{
	struct kp_choice chosen = {0};

	assert_true(arches_add(&chosen, "gfx942"));
	expect_missing(eb_archive("/a.kpack",
				  "{'x': {'gfx90a': {'ordinal': 0, 'metadata': {'path': "
				  "'lib/p'}}}, "
				  "'y': {'gfx942': {'ordinal': 0}}}"),
		       NULL, &chosen, "lib",
		       "toc/x/gfx90a.hsaco\tarchitecture gfx90a is not for arch=gfx942\n"
		       "lib/p\tarchitecture gfx90a is not for arch=gfx942\n"
		       "toc/y/gfx942.hsaco\tnot below subdir=lib\n");
	kp_choice_fini(&chosen);
}

static void expect_entries(struct edition *e, const struct kp_choice *arches,
			   const char *want)
{
	char *have = NULL;
	size_t size;
	FILE *f = open_memstream(&have, &size);

	assert_non_null(f);
	assert_true(entries_text_put(f, e, arches));
	fclose(f);
	assert_string_equal(have, want);
	free(have);
	edition_unref(e);
}

#define LINE(path, key, ordinal, metadata)                                               \
	"{\"path\":\"" path "\",\"archive\":\"/a.kpack\",\"key\":\"" key                 \
	"\",\"arch\":\"gfx1100\",\"type\":\"hsaco\",\"ordinal\":" ordinal                \
	",\"size\":4,\"compressed_size\":4,\"scheme\":\"none\",\"chunk\":null,"          \
	"\"xxh3\":null,\"metadata\":" metadata "}\n"

/* Each name of a file is listed with the entry that requested it. */
TEST(test_entries)
{
	static const char toc[] = "{'x': {'gfx1100': {'ordinal': 0}}, "
				  "'y': {'gfx1100': {'ordinal': 0, 'metadata': {'path': "
				  "'lib/p', 'n': 1}}}, "
				  "'z': {'gfx1100': {'ordinal': 0, 'metadata': {'path': "
				  "'lib/p', 'n': 2}}}}";

	expect_entries(eb_edition(eb_archive("/a.kpack", toc), NULL, &every_arch, NULL),
		       &every_arch,
		       LINE("lib/p", "y", "0", "{\"path\":\"lib/p\",\"n\":1}")
			       LINE("toc/x/gfx1100.hsaco", "x", "0", "null")
				       LINE("toc/y/gfx1100.hsaco", "y", "0",
					    "{\"path\":\"lib/p\",\"n\":1}")
					       LINE("toc/z/gfx1100.hsaco", "z", "0",
						    "{\"path\":\"lib/p\",\"n\":2}"));
	expect_entries(eb_edition(eb_archive("/a.kpack", toc), NULL, &every_arch, "lib"),
		       &every_arch, LINE("p", "y", "0", "{\"path\":\"lib/p\",\"n\":1}"));
}

/* An entry that is not shown does not claim a name, even if it comes first. */
TEST(test_entries_for_arches)
{
	struct kp_choice chosen = {0};

	assert_true(arches_add(&chosen, "gfx1100"));
	expect_entries(
		eb_edition(eb_archive("/a.kpack",
				      "{'x': {'gfx1030': {'ordinal': 0, 'metadata': "
				      "{'path': 'p'}}, 'gfx1100': {'ordinal': 1, "
				      "'metadata': {'path': 'p'}}}}"),
			   NULL, &chosen, NULL),
		&chosen,
		LINE("p", "x", "1", "{\"path\":\"p\"}")
			LINE("toc/x/gfx1100.hsaco", "x", "1", "{\"path\":\"p\"}"));
	kp_choice_fini(&chosen);
}

static int begin_suite(void **state)
{
	log_level(LOG_EMERG);
	return 0;
}

SUITE(begin_suite, NULL);
