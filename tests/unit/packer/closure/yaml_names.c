/* SPDX-License-Identifier: MIT */
#include "packer/closure/yaml_names.h"
#include <stdio.h>
#include <stdlib.h>
#include "tests/unit/unit.h"

static const struct {
	const char *yaml;
	const char *names; /* "name@gpu name", in order */
	const char *gpus;
} good[] = {
	{"", "", ""},
	{"a: b", "", ""},
	{"[k.co, k.hsaco, k.dat, k.yaml, k.so, .co]", "k.co k.hsaco k.dat k.yaml", ""},
	{"solutions:\n- {name: k_1, file: k_1.co}\n- {file: k_2.co}\n", "k_1.co k_2.co",
	 ""},
	/* not names: sentences, patterns, addresses */
	{"[see k.co, '*.co', http://x/k.co, \"a\\nb.co\"]", "", ""},
	{"\"k.co\": 1", "k.co", ""},
	/* the GPU of a name: the nearest key above it, or a value next to it */
	{"gfx90a: [a.co, {x: b.co}]\nc: c.co", "a.co@gfx90a b.co@gfx90a c.co", "gfx90a"},
	{"- {file: a.co, arch: gfx90a}\n- {arch: gfx1100, file: b.co}\n- c.co",
	 "a.co@gfx90a b.co@gfx1100 c.co", "gfx90a gfx1100"},
	{"gfx90a: {x: {arch: gfx1100, file: a.co}}", "a.co@gfx90a", "gfx90a gfx1100"},
	{"{value: gfx90a, file: a.co, gfx90a/b.co: x}", "a.co gfx90a/b.co", "gfx90a"},
	/* a file that Tensile loads lazily */
	{"library: {rows: [{library: {value: X_gfx90a, type: Placeholder}}]}",
	 "X_gfx90a.yaml", ""},
	{"{type: Processor, value: gfx90a}", "", "gfx90a"},
	/* aliases are not followed; multi-line keys and several documents are read */
	{"a: &x [k.co]\nb: *x\nc: *x", "k.co", ""},
	{"? [a.co]\n: {gfx90a: b.co}\n--- c.co\n", "a.co b.co@gfx90a c.co", "gfx90a"},
};

static struct yaml_names x;
static struct kpackx_error why;

static kpack_error_t read_text(const char *text, size_t size)
{
	why = (struct kpackx_error){0};
	return yaml_names_read((struct kp_span){(const uint8_t *)text, size}, &x, &why);
}

TEST(test_good)
{
	for (size_t i = 0; i < COUNT(good); i++) {
		char names[256] = "", gpus[256] = "";
		size_t n = 0;

		assert_int_equal(read_text(good[i].yaml, strlen(good[i].yaml)), 0);
		for (size_t k = 0; k < x.count; k++)
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s%s%s",
					      k ? " " : "", x.items[k].text,
					      x.items[k].gpu ? "@" : "",
					      x.items[k].gpu ? x.items[k].gpu : "");
		n = 0;
		for (size_t k = 0; k < x.n_gpus; k++)
			n += (size_t)snprintf(gpus + n, sizeof(gpus) - n, "%s%s",
					      k ? " " : "", x.gpus[k]);
		assert_string_equal(names, good[i].names);
		assert_string_equal(gpus, good[i].gpus);
		yaml_names_fini(&x);
	}
}

static void refused(const char *text, size_t size, const char *words)
{
	assert_int_equal(read_text(text, size), KPACK_ERROR_INVALID_FORMAT);
	assert_has(why.text, words);
	yaml_names_fini(&x);
}

TEST(test_bad)
{
	static const char *const bad[] = {
		"{",       "a: b: c",         "\t- x", "- \"x", "\xff\xff\xff",
		"a\n\x01", "%YAML 9.9\n---\n"};

	for (size_t i = 0; i < COUNT(bad); i++)
		refused(bad[i], strlen(bad[i]), "line ");
	refused("k.co\0k", 6, "line ");
}

TEST(test_depth)
{
	char *deep = malloc(100000);

	assert_non_null(deep);
	memset(deep, '[', 100000);
	refused(deep, 100000, "nested deeper");
	memset(deep, '{', 100000);
	refused(deep, 100000, "nested deeper");
	free(deep);
}

TEST(test_aliases)
{
	size_t n = 70000, size = 0;
	char *text = malloc(5 * n + 32);

	assert_non_null(text);
	size = (size_t)sprintf(text, "- &x k.co\n");
	for (size_t i = 0; i < n; i++, size += 5)
		memcpy(text + size, "- *x\n", 5);
	refused(text, size, "aliases");
	free(text);
}
