/* SPDX-License-Identifier: MIT */
/* AMD's configuration: what is accepted, and the messages about everything else. */
#include "packer/recombine/config.h"

#include "tests/unit/unit.h"

#define GROUP "\"architecture_groups\": {\"gfx94X\": {\"display_name\": \"MI300\", "

TEST(valid)
{
	static const char text[] =
		"{\"primary_shard\": \"a\", " GROUP
		"\"architectures\": [\"gfx942\", \"gfx90a:xnack+\"]},"
		" \"gfx11\": {\"display_name\": \"\", \"architectures\": [\"gfx1100\"]}},"
		" \"validation\": {\"error_on_missing_architecture\": true}, \"x\": 1}";
	struct recombine_config c;

	assert_int_equal(recombine_config_parse(kp_span_str(text), &c, NULL), 0);
	assert_string_equal(c.primary, "a");
	assert_int_equal(c.n_groups, 2);
	/* in file order */
	assert_string_equal(c.groups[0].name, "gfx94X");
	assert_string_equal(c.groups[0].display_name, "MI300");
	assert_int_equal(c.groups[0].n_arches, 2);
	assert_string_equal(c.groups[0].arches[1], "gfx90a:xnack+");
	assert_string_equal(c.groups[1].name, "gfx11");
	assert_true(c.error_on_duplicate);
	assert_false(c.verify_generic);
	assert_true(c.error_on_missing);
	assert_int_equal(c.warnings.counted, 1);
	assert_string_equal(c.warnings.items[0].text, "x: unknown field; ignored");
	recombine_config_fini(&c);
}

TEST(faults)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"[]", "the file is an array, not an object"},
		{"{\"primary_shard\": null}", "primary_shard: is null, not a string"},
		{"{\"primary_shard\": \"../a\"}",
		 "primary_shard: cannot be the name of a directory"},
		{"{\"primary_shard\": \"a\"}", "architecture_groups: is missing"},
		{"{\"primary_shard\": \"a\", \"architecture_groups\": {}}",
		 "architecture_groups: is empty"},
		{"{\"primary_shard\": \"a\", \"architecture_groups\": {\"x\": {}}}",
		 "architecture_groups.x: a group's name begins with 'gfx' and a digit, "
		 "and "
		 "has no '/'"},
		{"{\"primary_shard\": \"a\", " GROUP "\"architectures\": []}}}",
		 "architecture_groups.gfx94X.architectures: is empty"},
		{"{\"primary_shard\": \"a\", " GROUP "\"architectures\": \"gfx942\"}}}",
		 "architecture_groups.gfx94X.architectures: is a string, not an array"},
		{"{\"primary_shard\": \"a\", " GROUP
		 "\"architectures\": [\"gfx942\", \"gfx942\"]}}}",
		 "architecture_groups.gfx94X.architectures[1]: gfx942 is in group gfx94X "
		 "already"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct recombine_config c;
		struct kpackx_error why = {0};

		assert_int_equal(
			recombine_config_parse(kp_span_str(rows[i].text), &c, &why),
			KPACK_ERROR_INVALID_ARGUMENT);
		assert_string_equal(why.text, rows[i].says);
		recombine_config_fini(&c);
	}
}
