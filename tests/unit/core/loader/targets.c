/* SPDX-License-Identifier: MIT */
/*
 * The targets whose code an agent may run, in order.  There is an archive for every target; a load
 * picks the first one, and without that archive the next load picks the second.
 */
#include "tests/unit/loading.h"
#include "tests/unit/unit.h"

#define TRIPLE "amdgcn-amd-amdhsa--"

/* Every target that has an archive, including targets that no agent of a test can run. */
static const char *const targets[] = {
	"gfx90a",
	"gfx90a:sramecc+",
	"gfx90a:sramecc-",
	"gfx90a:xnack+",
	"gfx90a:xnack-",
	"gfx90a:sramecc+:xnack+",
	"gfx90a:sramecc+:xnack-",
	"gfx90a:sramecc-:xnack+",
	"gfx90a:sramecc-:xnack-",
	"gfx90a:xnack-:sramecc+",
	"gfx942",
	"gfx942:sramecc+",
	"gfx942:xnack+",
	"gfx942:xnack-",
	"gfx942:sramecc+:xnack+",
	"gfx942:sramecc+:xnack-",
	"gfx1201",
	"gfx1201:xnack-",
	"gfx1100",
	"gfx1101",
	"gfx110",
	"gfx11-generic",
	"gfx9-4-generic",
	"gfx9-generic",
	TRIPLE "gfx1201",
	TRIPLE "gfx11-generic",
	"gfx",
};

/* The code object for a target is the target's name. */
static int make_archives(void **state)
{
	make_dir(state);
	for (size_t i = 0; i < COUNT(targets); i++) {
		char name[32], arches[64];

		snprintf(name, sizeof(name), "%zu", i);
		snprintf(arches, sizeof(arches), "'%s'", targets[i]);
		write_archive(name, arches, OBJECTS({"k#0", targets[i], targets[i]}));
	}
	write_archive("other", "'gfx900'", OBJECTS({"k#0", "gfx900", "other"}));
	return 0;
}

/*
 * Load for AGENT without the archives in WITHOUT, one bit for each; returns the index of the target
 * whose code it gets, or COUNT(targets).  Archives are listed in reverse, so that only the order of
 * the targets can explain a choice.
 */
static size_t pick(kpack_cache_t cache, const char *agent, uint64_t without)
{
	char paths[512] = "other ", binary[64];
	struct marker m;
	size_t size = 0, i;
	void *data = NULL;
	kpack_error_t err;

	for (i = COUNT(targets); i-- > 0;)
		if (!(without >> i & 1))
			text_add(paths, sizeof(paths), "%zu ", i);
	m = marker_of("k", paths);
	snprintf(binary, sizeof(binary), "%s/fake.so", dir);
	err = kpack_load_code_object(cache, m.at, binary, 0, &agent, 1, &data, &size);
	marker_free(&m);
	if (err)
		assert_int_equal(err, KPACK_ERROR_ARCH_NOT_FOUND);
	for (i = 0; i < COUNT(targets); i++)
		if (!err && strlen(targets[i]) == size &&
		    memcmp(data, targets[i], size) == 0)
			break;
	assert_true(err || i < COUNT(targets));
	kpack_free_code_object(data);
	return i;
}

TEST(an_agent_runs_the_code_of_these_targets_in_order)
{
	static const struct {
		const char *agent;
		const char
			*absent; /* a part of the names of archives that are not there */
		const char *want;
	} cases[] = {
		{"gfx1201", NULL, "gfx1201"},
		{TRIPLE "gfx1201", NULL, "gfx1201"},
		/* not what begins alike */
		{"gfx1100", NULL, "gfx1100"},
		{"gfx110", NULL, "gfx110"},
		{"gfx11-generic", NULL, "gfx11-generic"},
		{TRIPLE "gfx11-generic", NULL, "gfx11-generic"},
		{"gfx9-4-generic", NULL, "gfx9-4-generic"},
		{"", NULL, ""},
		{NULL, NULL, ""},
		{TRIPLE, NULL, ""},
		{":xnack-", NULL, ""},
		/* with all features, with each, and with none */
		{"gfx90a:xnack+", NULL, "gfx90a:xnack+ gfx90a"},
		{"gfx942:sramecc+", NULL, "gfx942:sramecc+ gfx942"},
		{"gfx90a:sramecc-:xnack+", NULL,
		 "gfx90a:sramecc-:xnack+ gfx90a:sramecc- gfx90a:xnack+ gfx90a"},
		{TRIPLE "gfx942:sramecc+:xnack-", NULL,
		 "gfx942:sramecc+:xnack- gfx942:sramecc+ gfx942:xnack- gfx942"},
		/* in the agent's order; empty ones do not count */
		{"gfx90a:xnack-:sramecc+", NULL,
		 "gfx90a:xnack-:sramecc+ gfx90a:xnack- gfx90a:sramecc+ gfx90a"},
		{"gfx90a::xnack-:", NULL, "gfx90a:xnack- gfx90a"},
		/* no feature is ever turned */
		{"gfx90a:sramecc+:xnack-", "gfx90a:sramecc+", "gfx90a:xnack- gfx90a"},
		{"gfx90a:sramecc+:xnack+", "+", "gfx90a"},
		{"gfx90a:sramecc+:xnack-", "gfx90a", ""},
	};

	for (size_t c = 0; c < COUNT(cases); c++) {
		kpack_cache_t cache = new_cache();
		char have[512] = "";
		uint64_t without = 0;
		size_t i;

		for (i = 0; cases[c].absent && i < COUNT(targets); i++)
			if (strstr(targets[i], cases[c].absent))
				without |= UINT64_C(1) << i;
		while ((i = pick(cache, cases[c].agent, without)) < COUNT(targets)) {
			text_add(have, sizeof(have), "%s%s", have[0] ? " " : "",
				 targets[i]);
			without |= UINT64_C(1) << i;
		}
		assert_string_equal(have, cases[c].want);
		kpack_cache_destroy(cache);
	}
}

/* Not each of the 2^n subsets of n features is looked for. */
TEST(many_features_do_not_take_forever)
{
	char agent[4096] = TRIPLE "gfx1201";

	for (int n = 1; n <= 100; n++) {
		kpack_cache_t cache = new_cache();

		text_add(agent, sizeof(agent), ":feature%d+", n);
		/* shifts by 31 to 33 bits: undefined or 0 */
		if (n <= 5 || n >= 30)
			assert_string_equal(targets[pick(cache, agent, 0)], "gfx1201");
		kpack_cache_destroy(cache);
	}
}

SUITE(make_archives, remove_dir);
