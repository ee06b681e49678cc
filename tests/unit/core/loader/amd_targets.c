/* SPDX-License-Identifier: MIT */
/*
 * AMD's tests of target matching, test_isa_target_match.cpp, and HRX's KpackTargetMatch.
 *
 * Those tests call internal functions: one strips the triple, one splits a target, one
 * walks an agent's candidates until a callback stops it.  These tests see the candidates
 * only from outside.  There is an archive for every possible target; a load picks the
 * first candidate, and without that archive the next load picks the second.  Stripping
 * and splitting are tested by this too: there is no archive for a wrong prefix or
 * feature.
 */
#include "tests/unit/amd_fixtures.h"
#include "tests/unit/unit.h"

/* Every target that has an archive, including targets that no agent in a test can run. */
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
	"gfx950",
	"gfx950:sramecc+",
	"gfx950:sramecc-",
	"gfx950:xnack+",
	"gfx950:xnack-",
	"gfx950:sramecc+:xnack-",
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
	if (fx_make(state))
		return -1;
	for (size_t i = 0; i < COUNT(targets); i++) {
		char name[32], arches[64];

		snprintf(name, sizeof(name), "%zu", i);
		snprintf(arches, sizeof(arches), "'%s'", targets[i]);
		fx_put_packed(name, arches,
			      FX_OBJECTS({"k#0", targets[i], targets[i],
					  strlen(targets[i]), 0}));
	}
	return 0;
}

/*
 * The archives that are not in WITHOUT, one bit for each, and an archive that nothing
 * matches.  They are listed in reverse, so that only the order of the candidates can
 * explain a choice.
 */
static char *paths_without(uint64_t without, char out[512])
{
	strcpy(out, "test_noop.kpack ");
	for (size_t i = COUNT(targets); i-- > 0;)
		if (!(without >> i & 1))
			fx_say(out, 512, "%zu ", i);
	return out;
}

/*
 * The index of the target that AGENT gets without the archives in WITHOUT;
 * COUNT(targets): none.
 */
static size_t pick(kpack_cache_t cache, const char *agent, uint64_t without)
{
	char paths[512];
	struct fx_marker m = fx_marker_of("k", paths_without(without, paths));
	char binary[FX_PATH];
	size_t size = 0, i = 0;
	void *data = NULL;
	kpack_error_t err = kpack_load_code_object(
		cache, m.at, fx_path("fake.so", binary), 0, &agent, 1, &data, &size);

	fx_marker_free(&m);
	if (err) {
		assert_int_equal(err, KPACK_ERROR_ARCH_NOT_FOUND);
		return COUNT(targets);
	}
	while (i < COUNT(targets) &&
	       (strlen(targets[i]) != size || memcmp(data, targets[i], size) != 0))
		i++;
	assert_true(i < COUNT(targets));
	kpack_free_code_object(data);
	return i;
}

/* Check all candidates of AGENT in order, starting without the archives in WITHOUT. */
static void check_from(const char *agent, uint64_t without, const char *want)
{
	kpack_cache_t cache = fx_cache();
	char have[512] = "";
	size_t i;

	while ((i = pick(cache, agent, without)) < COUNT(targets)) {
		fx_say(have, sizeof(have), "%s%s", have[0] ? " " : "", targets[i]);
		without |= UINT64_C(1) << i;
	}
	assert_string_equal(have, want);
	kpack_cache_destroy(cache);
}

static void check(const char *agent, const char *want)
{
	check_from(agent, 0, want);
}

/* ---- the triple ---- */

/* StripTargetPrefix.StripsAmdgcnPrefix; HRX KpackTargetMatch.StripsAmdgcnPrefix,
 * .ConsumerCardWithPrefix; IsaTargetMatch.ConsumerCardWithPrefix */
TEST(a_triple_in_front_is_left_out)
{
	check(TRIPLE "gfx1201", "gfx1201");
}

/* StripTargetPrefix.StripsAmdgcnPrefixWithFeatures; HRX the same;
 * IsaTargetMatch.TwoFeaturesWithPrefix; HRX the same */
TEST(a_triple_before_features_is_left_out)
{
	check(TRIPLE "gfx942:sramecc+:xnack-",
	      "gfx942:sramecc+:xnack- gfx942:sramecc+ gfx942:xnack- gfx942");
}

/* StripTargetPrefix.NoOpForBareArch; HRX StripNoOpForBareArch, ConsumerCardBare;
 * IsaTargetMatch.ConsumerCardBare; ParseTargetId.BareProcessor */
TEST(a_bare_processor_is_its_only_candidate)
{
	check("gfx1201", "gfx1201");
}

/* StripTargetPrefix.NoOpForArchWithFeatures; ParseTargetId.TwoFeatures;
 * IsaTargetMatch.TwoFeaturesMostSpecificFirst; HRX the same */
TEST(two_features_make_four_candidates)
{
	check("gfx90a:sramecc+:xnack-",
	      "gfx90a:sramecc+:xnack- gfx90a:sramecc+ gfx90a:xnack- gfx90a");
}

/* StripTargetPrefix.EmptyString; ParseTargetId.EmptyString; IsaTargetMatch.EmptyString,
 * .ReturnsFalseForEmptyInput; HRX EmptyString */
TEST(an_empty_agent_has_no_candidate)
{
	check("", "");
	check(TRIPLE, "");
	check(":xnack-", "");
}

/* StripTargetPrefix.Nullptr; IsaTargetMatch.Nullptr */
TEST(a_null_agent_has_no_candidate)
{
	check(NULL, "");
}

/* ---- features ---- */

/* ParseTargetId.SingleFeature; IsaTargetMatch.SingleFeatureXnack; HRX SingleFeature */
TEST(one_feature_makes_two_candidates)
{
	check("gfx90a:xnack+", "gfx90a:xnack+ gfx90a");
	check("gfx90a:xnack-", "gfx90a:xnack- gfx90a");
}

/* IsaTargetMatch.SingleFeatureSramecc */
TEST(the_other_feature_makes_two_as_well)
{
	check("gfx942:sramecc+", "gfx942:sramecc+ gfx942");
}

/* ParseTargetId.GenericTarget; IsaTargetMatch.GenericIsa; HRX GenericIsa */
TEST(a_generic_target_is_its_only_candidate)
{
	check("gfx11-generic", "gfx11-generic");
	check("gfx9-4-generic", "gfx9-4-generic");
}

/* IsaTargetMatch.GenericIsaWithPrefix */
TEST(a_generic_target_may_have_the_triple)
{
	check(TRIPLE "gfx11-generic", "gfx11-generic");
}

/* IsaTargetMatch.ConsumerCardGfx1100 */
TEST(a_processor_is_no_other_that_begins_alike)
{
	check("gfx1100", "gfx1100");
	check("gfx110", "gfx110");
}

/* IsaTargetMatch.AsanAgent */
TEST(an_agent_with_xnack_takes_its_candidates_in_order)
{
	check("gfx942:sramecc+:xnack+",
	      "gfx942:sramecc+:xnack+ gfx942:sramecc+ gfx942:xnack+ gfx942");
}

/* IsaTargetMatch.MixedFeatureValues; HRX the same */
TEST(features_of_either_sign_are_kept)
{
	check("gfx90a:sramecc-:xnack+",
	      "gfx90a:sramecc-:xnack+ gfx90a:sramecc- gfx90a:xnack+ gfx90a");
}

/* IsaTargetMatch.Gfx950TwoFeatures */
TEST(another_processor_has_four_candidates_too)
{
	check(TRIPLE "gfx950:sramecc+:xnack-",
	      "gfx950:sramecc+:xnack- gfx950:sramecc+ gfx950:xnack- gfx950");
}

/*
 * HRX FeatureSubsetNeverFlipsSign: the other tests have archives of the opposite sign;
 * this one has nothing else
 */
TEST(no_sign_is_ever_turned)
{
	uint64_t minus = 0;

	for (size_t i = 0; i < COUNT(targets); i++)
		if (!strchr(targets[i], '+'))
			minus |= UINT64_C(1) << i;
	check_from("gfx90a:sramecc-:xnack-", minus, "");
	check_from("gfx90a:xnack-", minus, "");
	check_from("gfx90a:xnack+", minus, "gfx90a:xnack+");
}

/* 3.6: an agent's features keep their order. */
TEST(features_are_not_sorted)
{
	check("gfx90a:xnack-:sramecc+",
	      "gfx90a:xnack-:sramecc+ gfx90a:xnack- gfx90a:sramecc+ gfx90a");
}

/* 3.6: empty features are ignored. */
TEST(empty_features_are_left_out)
{
	check("gfx90a::xnack-:", "gfx90a:xnack- gfx90a");
}

/* ---- where the walk ends ---- */

/*
 * IsaTargetMatch.EarlyTerminationOnFirstMatch; HRX EarlyTerminationStopsAtFirstMatch: the
 * first existing target is taken, whatever follows
 */
TEST(the_first_match_ends_the_walk)
{
	kpack_cache_t cache = fx_cache();

	assert_string_equal(targets[pick(cache, "gfx90a:sramecc+:xnack-", 0)],
			    "gfx90a:sramecc+:xnack-");
	kpack_cache_destroy(cache);
}

/* IsaTargetMatch.EarlyTerminationOnThirdMatch */
TEST(the_third_match_ends_the_walk)
{
	uint64_t without = 0;

	for (size_t i = 0; i < COUNT(targets); i++)
		if (strncmp(targets[i], "gfx90a:sramecc+", 15) == 0)
			without |= UINT64_C(1) << i;
	check_from("gfx90a:sramecc+:xnack-", without, "gfx90a:xnack- gfx90a");
}

/* IsaTargetMatch.ConsumerCardEarlyTermination */
TEST(the_only_match_ends_the_walk)
{
	kpack_cache_t cache = fx_cache();

	assert_string_equal(targets[pick(cache, TRIPLE "gfx1201", 0)], "gfx1201");
	kpack_cache_destroy(cache);
}

/*
 * IsaTargetMatch.NoMatchReturnsAllCandidates: the result is false; any single candidate
 * suffices, which shows that all are visited
 */
TEST(no_match_is_an_error_and_any_match_is_none)
{
	static const char *const candidates[] = {
		"gfx90a:sramecc+:xnack-", "gfx90a:sramecc+", "gfx90a:xnack-", "gfx90a"};
	uint64_t others = 0;

	for (size_t i = 0; i < COUNT(targets); i++)
		if (strncmp(targets[i], "gfx90a", 6) == 0)
			others |= UINT64_C(1) << i;
	check_from(candidates[0], others, "");
	for (size_t c = 0; c < COUNT(candidates); c++)
		for (size_t i = 0; i < COUNT(targets); i++)
			if (strcmp(targets[i], candidates[c]) == 0)
				check_from(candidates[0], ~(UINT64_C(1) << i),
					   candidates[c]);
}

SUITE(make_archives, fx_remove);
