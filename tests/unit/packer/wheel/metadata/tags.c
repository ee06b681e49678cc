/* SPDX-License-Identifier: MIT */
#include "packer/wheel/metadata/tags.h"
#include <stdlib.h>
#include <string.h>
#include "tests/unit/unit.h"

static const struct {
	const char *wheel, *name, *fault;
} pairs[] = {
	{"Tag: py3-none-any\n", "py3-none-any", ""},
	{"Tag: CP313-cp313-Linux_x86_64\n", "cp313-CP313-linux_x86_64", ""},
	{"Tag: py3-none-any\nTag: py2-none-any\n", "py2.py3-none-any", ""},
	{"Tag: a-b-c\nTag: a-b-d\nTag: a-e-c\nTag: a-e-d\n", "a-b.e-c.d", ""},
	/* a repeated tag counts once */
	{"Tag: a-b-c\nTag: a-b-c\n", "a.a-b-c.c", ""},
	{"Tag: a-b-c\nTag: a-e-d\n", "a-b.e-c.d",
	 "the file name has the tag a-b-d, but WHEEL does not"},
	{"Tag: py3-none-any\n", "py2.py3-none-any",
	 "the file name has the tag py2-none-any, but WHEEL does not"},
	{"Tag: a-b-c\nTag: a-b-d\n", "a-b-c",
	 "WHEEL has the tag a-b-d, but the file name does not"},
	/* in WHEEL each tag is a single one */
	{"Tag: py2.py3-none-any\n", "py2.py3-none-any",
	 "WHEEL has the tag py2.py3-none-any, but the file name does not"},
	{"Tag: a-b\n", "a-b-c", "WHEEL has the tag a-b, but the file name does not"},
	{"Tag: a-b-c-d\n", "a-b-c",
	 "WHEEL has the tag a-b-c-d, but the file name does not"},
	{"Tag:\n", "a-b-c", "WHEEL has the tag , but the file name does not"},
	{"Tag: \x1b-b-c\n", "a-b-c",
	 "WHEEL has the tag \\033-b-c, but the file name does not"},
};

static void name_of(const char *tags, struct wheel_name *name)
{
	char file[WHEEL_NAME_MAX + 1];

	snprintf(file, sizeof(file), "d-1-%s.whl", tags);
	assert_int_equal(wheel_name_parse(file, name, NULL), KPACK_SUCCESS);
}

TEST(tags_are_compared)
{
	for (size_t i = 0; i < COUNT(pairs); i++) {
		char fault[WHEEL_TAGS_FAULT];
		struct metadata_text m = {0};
		struct wheel_name name;

		name_of(pairs[i].name, &name);
		assert_int_equal(
			metadata_text_parse(kp_span_str(pairs[i].wheel), &m, NULL),
			KPACK_SUCCESS);
		wheel_tags_compare(&m, &name, fault);
		assert_string_equal(fault, pairs[i].fault);
		metadata_text_fini(&m);
	}
}

TEST(tags_are_printed)
{
	struct wheel_name name;
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	name_of("py2.py3-none-a.b", &name);
	wheel_tags_print(f, &name);
	fclose(f);
	assert_string_equal(text, "Tag: py2-none-a\nTag: py2-none-b\n"
				  "Tag: py3-none-a\nTag: py3-none-b\n");
	free(text);
}
