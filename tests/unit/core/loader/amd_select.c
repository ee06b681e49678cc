/* SPDX-License-Identifier: MIT */
/*
 * Choosing among several archives: the MultiPackLoaderTest of a fork of AMD's loader; the
 * tests' names state the rules.  Where the fork and AMD's loader disagree on damaged
 * archives, AMD's rule holds unless ROCM_KPACK_STRICT asks for the fork's.
 */
#include "tests/unit/amd_fixtures.h"
#include "tests/unit/unit.h"

#define OBJECT(name, key, arch, text)                                                    \
	static const struct fx_object name = {key, arch, text, sizeof(text) - 1, 0}

OBJECT(first_only, "lib/first.so#0", "gfx900", "FIRST_ONLY");
OBJECT(second_only, "lib/second.so#0", "gfx900", "SECOND_ONLY");
OBJECT(split_906, "lib/split.so#0", "gfx906", "SPLIT_IN_FIRST");
OBJECT(split_900, "lib/split.so#0", "gfx900", "SPLIT_IN_SECOND");
OBJECT(index_0, "lib/first.so#0", "gfx900", "FIRST_ONLY");
OBJECT(index_1, "lib/first.so#1", "gfx900", "INDEX_1_IN_SECOND");
OBJECT(twice_a, "lib/twice.so#0", "gfx900", "TWICE_IN_FIRST");
OBJECT(twice_b, "lib/twice.so#0", "gfx900", "TWICE_IN_SECOND");
OBJECT(twice_906, "lib/twice.so#0", "gfx906", "TWICE_IN_SECOND_GFX906");
OBJECT(twice_xnack, "lib/twice.so#0", "gfx900:xnack+", "TWICE_WITH_FEATURE");

static int make_archives(void **state)
{
	if (fx_make(state))
		return -1;
	fx_put_packed("a", "'gfx900', 'gfx906'",
		      FX_OBJECTS(first_only, split_906, twice_a));
	fx_put_packed("b", "'gfx900', 'gfx906'",
		      FX_OBJECTS(second_only, split_900, index_1, twice_b, twice_906));
	fx_put_packed("feature", "'gfx900:xnack+'", FX_OBJECTS(twice_xnack));
	fx_put_packed(
		"damaged", "'gfx900', 'gfx900:xnack+'",
		FX_OBJECTS({"lib/twice.so#0", "gfx900", "no frame", 8, FX_DAMAGED},
			   {"lib/twice.so#0", "gfx900:xnack+", "none", 4, FX_DAMAGED}));
	/* one entry has a wrong size, the other an ordinal past the last frame */
	{
		struct ab a = ab_new_zstd();

		ab_frame(&a, "0123456789", 10);
		ab_toc(&a,
		       "{'gfx_arches': ['gfx900'], 'compression_scheme': "
		       "'zstd-per-kernel', 'zstd_offset': 64, 'zstd_size': %zu, "
		       "'toc': {'lib/twice.so#0': {'gfx900': "
		       "{'ordinal': 0, 'original_size': 11}}, 'lib/second.so#0': "
		       "{'gfx900': {'ordinal': 1, 'original_size': 10}}}}",
		       a.size - 64);
		fx_put("lying", &a);
	}
	return 0;
}

#define ASK(name, index, archs, paths) (&(const struct fx_ask){name, index, archs, paths})

/* MultiPackLoaderTest.DisjointModulesWithSameArchitecture */
TEST(modules_may_be_in_different_archives, NULL, fx_after)
{
	fx_loads(ASK("lib/first.so", 0, "gfx900", "a b"), &first_only);
	fx_loads(ASK("lib/second.so", 0, "gfx900", "a b"), &second_only);
	fx_loads(ASK("lib/first.so", 0, "gfx900", "b a"), &first_only);
}

/* .ModuleMustContainRequestedArchitecture */
TEST(a_module_for_another_arch_does_not_count, NULL, fx_after)
{
	fx_loads(ASK("lib/split.so", 0, "gfx900", "a b"), &split_900);
	fx_loads(ASK("lib/split.so", 0, "gfx906", "b a"), &split_906);
}

/* .CodeObjectIndexParticipatesInSelection */
TEST(the_index_is_part_of_what_is_looked_for, NULL, fx_after)
{
	fx_loads(ASK("lib/first.so", 1, "gfx900", "a b"), &index_1);
	fx_loads(ASK("lib/first.so", 0, "gfx900", "a b"), &index_0);
}

/* .FirstPathWinsDuplicatesEvenAfterCaching */
TEST(the_first_path_wins_whatever_is_open, NULL, fx_after)
{
	kpack_cache_t cache = fx_cache();

	fx_check_load(cache, ASK("lib/twice.so", 0, "gfx900", "b"), &twice_b);
	fx_check_load(cache, ASK("lib/twice.so", 0, "gfx900", "a b"), &twice_a);
	fx_check_load(cache, ASK("lib/twice.so", 0, "gfx900", "b a"), &twice_b);
	kpack_cache_destroy(cache);
}

/* .ArchitecturePriorityPrecedesArchiveOrder */
TEST(archs_come_before_archives, NULL, fx_after)
{
	fx_loads(ASK("lib/twice.so", 0, "gfx906 gfx900", "a b"), &twice_906);
	fx_loads(ASK("lib/twice.so", 0, "gfx900 gfx906", "a b"), &twice_a);
}

/* .MissingModuleFallsBackToCompatibleFeatureSubset */
TEST(fewer_features_stand_in_for_a_missing_module, NULL, fx_after)
{
	fx_loads(ASK("lib/second.so", 0, TRIPLE "gfx900:xnack+", "feature b"),
		 &second_only);
}

/* .FeatureSpecificityPrecedesArchiveOrder */
TEST(more_features_come_before_archives, NULL, fx_after)
{
	fx_loads(ASK("lib/twice.so", 0, "gfx900:xnack+", "a feature"), &twice_xnack);
}

/* .MissingModuleDiffersFromMissingArchitecture */
TEST(a_missing_module_is_no_missing_arch, NULL, fx_after)
{
	fx_loads_not(ASK("lib/absent.so", 0, "gfx900", "a b"),
		     KPACK_ERROR_KERNEL_NOT_FOUND);
	fx_loads_not(ASK("lib/absent.so", 0, "gfx9999", "a b"),
		     KPACK_ERROR_ARCH_NOT_FOUND);
}

/* .CorruptSelectedPayloadIsNotMaskedByDuplicate; this rule holds only in strict mode */
TEST(strictly_a_duplicate_does_not_hide_damage, NULL, fx_after)
{
	setenv("ROCM_KPACK_STRICT", "1", 1);
	fx_loads_not(ASK("lib/twice.so", 0, "gfx900", "damaged a"),
		     KPACK_ERROR_DECOMPRESSION_FAILED);
	fx_loads_not(ASK("lib/twice.so", 0, "gfx900:xnack+", "damaged a"),
		     KPACK_ERROR_DECOMPRESSION_FAILED);
	fx_loads(ASK("lib/twice.so", 0, "gfx900", "a damaged"), &twice_a);
}

/*
 * 3.5, step 5: after any failure, including damage, the next archive is tried, then fewer
 * features, then the next arch
 */
TEST(damage_is_passed_over, NULL, fx_after)
{
	fx_loads(ASK("lib/twice.so", 0, "gfx900", "damaged a"), &twice_a);
	fx_loads(ASK("lib/twice.so", 0, "gfx900", "damaged lying b"), &twice_b);
	fx_loads(ASK("lib/twice.so", 0, "gfx900:xnack+", "damaged a"), &twice_a);
	fx_loads(ASK("lib/twice.so", 0, "gfx900:xnack+", "damaged feature"),
		 &twice_xnack);
	fx_loads(ASK("lib/second.so", 0, "gfx900", "lying b"), &second_only);
	fx_loads(ASK("lib/twice.so", 0, "gfx900:xnack+ gfx906", "damaged b"), &twice_b);
	fx_loads(ASK("lib/split.so", 0, "gfx900 gfx906", "damaged a"), &split_906);
	fx_loads(ASK("lib/twice.so", 0, "gfx900 gfx906", "damaged lying b"), &twice_b);
}

/* ... and is the result if nothing else is found. */
TEST(damage_alone_is_reported, NULL, fx_after)
{
	fx_loads_not(ASK("lib/twice.so", 0, "gfx900", "damaged"),
		     KPACK_ERROR_DECOMPRESSION_FAILED);
	fx_loads_not(ASK("lib/twice.so", 0, "gfx900 gfx9999", "lying"),
		     KPACK_ERROR_DECOMPRESSION_FAILED);
	fx_loads_not(ASK("lib/second.so", 0, "gfx900", "lying"),
		     KPACK_ERROR_KERNEL_NOT_FOUND);
}

/* 3.5, step 5: an archive offers exactly the archs in gfx_arches. */
TEST(an_arch_that_is_not_declared_is_not_offered, NULL, fx_after)
{
	fx_put_packed("undeclared", "'gfx906'", FX_OBJECTS(twice_a));
	fx_loads_not(ASK("lib/twice.so", 0, "gfx900", "undeclared"),
		     KPACK_ERROR_ARCH_NOT_FOUND);
	fx_loads(ASK("lib/twice.so", 0, "gfx900", "undeclared b"), &twice_b);
}

/* 3.5, step 3: missing files and files that are not archives are skipped silently. */
TEST(files_that_cannot_be_opened_are_skipped, NULL, fx_after)
{
	fx_write("text", "no archive, only text", 21);
	fx_write("empty", "", 0);
	fx_loads(ASK("lib/twice.so", 0, "gfx900", "none text empty . /dev/null a"),
		 &twice_a);
	fx_loads_not(ASK("lib/twice.so", 0, "gfx900", "none text empty . /dev/null"),
		     KPACK_ERROR_ARCHIVE_NOT_FOUND);
}

/* 3.5, step 2: each path gives a file for each arch and each subset of its features. */
TEST(a_placeholder_stands_for_every_target, NULL, fx_after)
{
	static const struct fx_object xnack = {"k#0", "gfx90a:xnack-", "XNACK", 5, 0};
	static const struct fx_object bare = {"k#1", "gfx90a", "BARE", 4, 0};

	fx_put_packed("x_gfx90a:xnack-.kpack", "'gfx90a:xnack-'", FX_OBJECTS(xnack));
	fx_put_packed("x_gfx90a.kpack", "'gfx90a'", FX_OBJECTS(bare));
	fx_put_packed("y_gfx90a_@GFXARCH@", "'gfx90a'", FX_OBJECTS(bare));
	fx_loads(ASK("k", 0, TRIPLE "gfx90a:sramecc+:xnack-", "x_@GFXARCH@.kpack"),
		 &xnack);
	fx_loads(ASK("k", 1, TRIPLE "gfx90a:sramecc+:xnack-", "x_@GFXARCH@.kpack"),
		 &bare);
	fx_loads(ASK("k", 0, "gfx1100 gfx90a:xnack-", "x_@GFXARCH@.kpack"), &xnack);
	fx_loads_not(ASK("k", 0, "gfx90a:xnack+", "x_@GFXARCH@.kpack"),
		     KPACK_ERROR_KERNEL_NOT_FOUND);
	fx_loads_not(ASK("k", 0, "gfx1100", "x_@GFXARCH@.kpack"),
		     KPACK_ERROR_ARCHIVE_NOT_FOUND);
	/* 2.5: only the first placeholder in a path is replaced */
	fx_loads(ASK("k", 1, "gfx90a", "y_@GFXARCH@_@GFXARCH@"), &bare);
}

SUITE(make_archives, fx_remove);
