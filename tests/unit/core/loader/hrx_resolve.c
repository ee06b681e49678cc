/* SPDX-License-Identifier: MIT */
/*
 * HRX's tests of everything but archives and targets, kpack_test.cc, made through the
 * public calls.  Above each test is HRX's name for it.  HRX's KpackTargetMatch is in
 * amd_targets.c, its KpackArchive in hrx_archive.c.
 *
 * HRX's path functions cannot be called from here; the archive that a load finds shows
 * what they would return.
 */
#include <sys/stat.h>
#include "tests/unit/amd_fixtures.h"
#include "tests/unit/unit.h"

static void check_marker(struct fx_marker m, kpack_error_t want)
{
	kpack_cache_t cache = fx_cache();
	const char *archs[] = {"gfx900"};
	char binary[FX_PATH];
	void *data = NULL;
	size_t size = 0;

	assert_int_equal(kpack_load_code_object(cache, m.at, fx_path("fake.so", binary),
						0, archs, 1, &data, &size),
			 want);
	assert_true((want == KPACK_SUCCESS) == (data != NULL));
	kpack_free_code_object(data);
	kpack_cache_destroy(cache);
	fx_marker_free(&m);
}

/* ---- KpackMetadata ---- */

/* .ParsesValid */
TEST(a_marker_is_read, NULL, fx_after)
{
	check_marker(fx_marker_of("lib/libtest.so", "test_noop.kpack"), KPACK_SUCCESS);
}

/* .ParsesLongKernelNameStr8; also with the next longer head */
TEST(long_names_are_read, NULL, fx_after)
{
	static const size_t sizes[] = {31, 32, 200, 255, 256, 1000, 4000};

	for (size_t i = 0; i < COUNT(sizes); i++) {
		char name[4096], key[4096 + 2];

		memset(name, 'n', sizes[i]);
		name[sizes[i]] = 0;
		snprintf(key, sizeof(key), "%s#0", name);
		fx_put_packed("long", "'gfx900'",
			      FX_OBJECTS({key, "gfx900", "LONG", 4, 0}));
		check_marker(fx_marker_of(name, "long"), KPACK_SUCCESS);
	}
}

/* .SearchPathsSkipsNonStringEntries */
TEST(paths_that_are_no_strings_are_skipped, NULL, fx_after)
{
	check_marker(fx_marker("{'kernel_name': 'lib/libtest.so', 'kpack_search_paths': "
			       "[7, 'test_noop.kpack', nil]}"),
		     KPACK_SUCCESS);
}

/* .MissingKernelName, .MissingSearchPaths, .EmptySearchPaths, .WrongTypeKernelName,
 * .SearchPathsWrongType, .NotAMap */
TEST(what_is_no_marker_is_refused, NULL, fx_after)
{
	static const char *const bad[] = {
		"{'kpack_search_paths': ['test_noop.kpack']}",
		"{'kernel_name': 'lib/libtest.so'}",
		"{'kernel_name': 'lib/libtest.so', 'kpack_search_paths': []}",
		"{'kernel_name': 7, 'kpack_search_paths': ['test_noop.kpack']}",
		"{'kernel_name': 'lib/libtest.so', 'kpack_search_paths': {}}",
		"'lib/libtest.so'",
	};

	for (size_t i = 0; i < COUNT(bad); i++)
		check_marker(fx_marker(bad[i]), KPACK_ERROR_INVALID_METADATA);
}

/* .EmptyOrNullInput */
TEST(no_readable_byte_is_no_marker, NULL, fx_after)
{
	check_marker(fx_marker_bytes("", 0), KPACK_ERROR_INVALID_METADATA);
	check_marker((struct fx_marker){.at = (char *)8}, KPACK_ERROR_INVALID_METADATA);
	check_marker((struct fx_marker){.at = NULL}, KPACK_ERROR_INVALID_ARGUMENT);
}

#define KERNEL_NAME "\xabkernel_name"
#define SEARCH_PATHS "\xb2kpack_search_paths"

/*
 * .TruncatedStr8ValueRejected, .OversizeStr32ValueRejected, .ValueEndingOnMarkerRejected:
 * the memory ends with the bytes, so a read past them kills the process
 */
TEST(strings_that_leave_the_memory_are_refused, NULL, fx_after)
{
	static const struct {
		const char *bytes;
		size_t size;
	} bad[] = {
		{"\x82" KERNEL_NAME "\xd9\x40shrt", 1 + 12 + 2 + 4},
		{"\x82" KERNEL_NAME "\xdb\xff\xff\xff\xffshrt", 1 + 12 + 5 + 4},
		{"\x82" KERNEL_NAME "\xdb\x7f", 1 + 12 + 2},
		{"\x82" KERNEL_NAME, 1 + 12},
		{"\x82" KERNEL_NAME "\xa1k" SEARCH_PATHS, 1 + 12 + 2 + 19},
		{"\x82" KERNEL_NAME "\xa1k" SEARCH_PATHS "\x91", 1 + 12 + 2 + 19 + 1},
		{"\x82" KERNEL_NAME "\xa1k" SEARCH_PATHS "\x91\xd9", 1 + 12 + 2 + 19 + 2},
		{"\xdf\xff\xff\xff\xff", 5},
	};

	for (size_t i = 0; i < COUNT(bad); i++)
		check_marker(fx_marker_bytes(bad[i].bytes, bad[i].size),
			     KPACK_ERROR_INVALID_METADATA);
}

/* No proper prefix of a marker is a marker. */
TEST(a_cut_marker_is_refused, NULL, fx_after)
{
	struct fx_marker whole = fx_marker_of("lib/libtest.so", "test_noop.kpack");

	for (size_t size = 0; size < whole.size; size++)
		check_marker(fx_marker_bytes(whole.at, size),
			     KPACK_ERROR_INVALID_METADATA);
	fx_marker_free(&whole);
}

/* .TooManySearchPaths: HRX accepts 32, AMD and we any number */
TEST(more_than_32_paths_are_taken, NULL, fx_after)
{
	char paths[1024] = "";

	for (int i = 0; i < 40; i++)
		fx_say(paths, sizeof(paths), "no%d.kpack ", i);
	fx_say(paths, sizeof(paths), "test_noop.kpack");
	check_marker(fx_marker_of("lib/libtest.so", paths), KPACK_SUCCESS);
}

/* ---- KpackPath ---- */

static const struct fx_object here[] = {{"k#0", "gfx900", "HERE", 4, 0}, {0}};

/* Load k#0 for gfx900 with PATTERN for the binary BINARY below the directory. */
static kpack_error_t find_from(const char *binary, const char *pattern)
{
	struct fx_marker m = fx_marker_of("k", pattern);
	kpack_cache_t cache = fx_cache();
	const char *archs[] = {"gfx900"};
	char path[FX_PATH];
	void *data = NULL;
	size_t size = 0;
	kpack_error_t err = kpack_load_code_object(cache, m.at, fx_path(binary, path), 0,
						   archs, 1, &data, &size);

	if (!err)
		assert_true(fx_is(data, size, here));
	kpack_free_code_object(data);
	kpack_cache_destroy(cache);
	fx_marker_free(&m);
	return err;
}

static int make_tree(void **state)
{
	static const char *const dirs[] = {"lib", "lib/deep", ".kpack", "real",
					   "real/lib"};
	char path[FX_PATH], to[FX_PATH];

	if (fx_make(state))
		return -1;
	for (size_t i = 0; i < COUNT(dirs); i++)
		if (mkdir(fx_path(dirs[i], path), 0755))
			return -1;
	fx_put_packed(".kpack/x_gfx900.kpack", "'gfx900'", here);
	fx_put_packed("lib/same.kpack", "'gfx900'", here);
	fx_put_packed("real/beside.kpack", "'gfx900'", here);
	return symlink(fx_path("real/lib", to), fx_path("link", path));
}

/* .ExpandGfxArchReplaces; KpackResolve.GfxArchPlaceholderExpansion */
TEST(the_placeholder_is_replaced, NULL, fx_after)
{
	assert_int_equal(find_from("x.so", ".kpack/x_@GFXARCH@.kpack"), KPACK_SUCCESS);
}

/* .ExpandGfxArchNoPlaceholder */
TEST(without_placeholder_the_path_stays, NULL, fx_after)
{
	assert_int_equal(find_from("x.so", ".kpack/x_gfx900.kpack"), KPACK_SUCCESS);
	assert_int_equal(find_from("x.so", ".kpack/x_@gfxarch@.kpack"),
			 KPACK_ERROR_ARCHIVE_NOT_FOUND);
}

/*
 * .ExpandGfxArchBufferTooSmall: no buffer can be too small here; a path that is too long
 * for a file is skipped
 */
TEST(a_path_too_long_for_files_is_passed_over, NULL, fx_after)
{
	char *paths = malloc(8192);
	char text[8300];

	assert_non_null(paths);
	memset(paths, 'a', 8191);
	paths[8191] = 0;
	snprintf(text, sizeof(text),
		 "{'kernel_name': 'k', 'kpack_search_paths': ['%s@GFXARCH@']}", paths);
	check_marker(fx_marker(text), KPACK_ERROR_ARCHIVE_NOT_FOUND);
	free(paths);
}

/* .ResolveSiblingArchive */
TEST(an_archive_in_a_sibling_directory_is_found, NULL, fx_after)
{
	assert_int_equal(find_from("lib/x.so", "../.kpack/x_gfx900.kpack"),
			 KPACK_SUCCESS);
}

/* .ResolveSameDir */
TEST(an_archive_beside_the_binary_is_found, NULL, fx_after)
{
	assert_int_equal(find_from("lib/x.so", "same.kpack"), KPACK_SUCCESS);
}

/* .ResolveCollapsesDotSegments */
TEST(dots_in_a_path_are_resolved, NULL, fx_after)
{
	assert_int_equal(
		find_from("lib/deep/x.so", "./.././../lib/./../.kpack/x_gfx900.kpack"),
		KPACK_SUCCESS);
}

/* .ResolveAbsoluteRelativePassthrough; KpackResolve.AbsoluteSearchPath */
TEST(an_absolute_path_stays, NULL, fx_after)
{
	char path[FX_PATH];

	assert_int_equal(find_from("no/such/x.so", fx_path("lib/same.kpack", path)),
			 KPACK_SUCCESS);
}

/* .ResolveAbsoluteWithDotDot */
TEST(an_absolute_path_may_have_dots, NULL, fx_after)
{
	char path[FX_PATH];

	assert_int_equal(
		find_from("x.so", fx_path("lib/deep/../../lib/./same.kpack", path)),
		KPACK_SUCCESS);
}

/*
 * 3.5 and 3.10: ".." after a symlink is the parent of the link's target, as in AMD's
 * loader; in HRX it removes the preceding component
 */
TEST(symlinks_are_followed_before_dots, NULL, fx_after)
{
	assert_int_equal(find_from("link/x.so", "../beside.kpack"), KPACK_SUCCESS);
	assert_int_equal(find_from("link/x.so", "../lib/same.kpack"),
			 KPACK_ERROR_ARCHIVE_NOT_FOUND);
}

/* ---- KpackDiscover ---- */

static const char constant[] = "these bytes are in the file of this program";

/* .ResolvesOwnBinary */
TEST(the_offset_leads_to_the_same_bytes, NULL, fx_after)
{
	char path[4096], bytes[sizeof(constant)];
	size_t offset = 0;
	FILE *f;

	assert_int_equal(
		kpack_discover_binary_path(constant, path, sizeof(path), &offset),
		KPACK_SUCCESS);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fseek(f, (long)offset, SEEK_SET), 0);
	assert_int_equal(fread(bytes, 1, sizeof(bytes), f), sizeof(bytes));
	fclose(f);
	assert_memory_equal(bytes, constant, sizeof(bytes));
}

static void check_undiscovered(const void *address, size_t room, kpack_error_t want)
{
	char path[4096] = "untouched";
	size_t offset = 7;

	assert_int_equal(kpack_discover_binary_path(address, path, room, &offset), want);
	assert_string_equal(path, "untouched");
	assert_int_equal(offset, 7);
}

/* .HeapPointerNotFound */
TEST(memory_of_no_file_is_not_discovered, NULL, fx_after)
{
	void *heap = calloc(1, 16);

	check_undiscovered(heap, 4096, KPACK_ERROR_PATH_DISCOVERY_FAILED);
	free(heap);
}

/* .UnmappedAddressNotFound */
TEST(an_unmapped_address_is_not_discovered, NULL, fx_after)
{
	check_undiscovered((void *)8, 4096, KPACK_ERROR_PATH_DISCOVERY_FAILED);
}

/* .NullAddress, .ZeroCapacity, .BufferTooSmall */
TEST(bad_arguments_of_a_discovery_are_refused, NULL, fx_after)
{
	check_undiscovered(NULL, 4096, KPACK_ERROR_INVALID_ARGUMENT);
	check_undiscovered(constant, 0, KPACK_ERROR_INVALID_ARGUMENT);
	check_undiscovered(constant, 4, KPACK_ERROR_INVALID_ARGUMENT);
}

/* ---- KpackResolve; AbsoluteSearchPath and GfxArchPlaceholderExpansion are above ---- */

/* .MultiTuCoIndex */
TEST(every_index_is_its_own_object, NULL, fx_after)
{
	static const struct fx_object tus[] = {{"m#0", "gfx900", "TU0", 3, 0},
					       {"m#1", "gfx900", "TU1", 3, 0},
					       {"m#10", "gfx900", "TU10", 4, 0},
					       {"m#4294967295", "gfx900", "LAST", 4, 0},
					       {0}};
	static const uint32_t indices[] = {0, 1, 10, UINT32_MAX};

	fx_put_packed("tus", "'gfx900'", tus);
	for (size_t i = 0; i < COUNT(indices); i++)
		fx_loads(&(struct fx_ask){"m", indices[i], "gfx900", "tus"}, &tus[i]);
}

/* .ArchitecturePriorityPrefersFirst */
TEST(the_first_arch_is_preferred, NULL, fx_after)
{
	fx_loads(
		&(struct fx_ask){"lib/libtest.so", 0, "gfx906 gfx900", "test_noop.kpack"},
		&fx_noop[1]);
}

/* .FeatureSubsetMatch */
TEST(fewer_features_match, NULL, fx_after)
{
	fx_loads(&(struct fx_ask){"lib/libtest.so", 0, "gfx90a:sramecc+:xnack-",
				  "test_fallthrough_generic.kpack"},
		 &fx_generic[0]);
}

/* .ArchNotFound */
TEST(an_arch_nobody_has_is_not_found, NULL, fx_after)
{
	fx_loads_not(&(struct fx_ask){"lib/libtest.so", 0, "gfx1100", "test_noop.kpack"},
		     KPACK_ERROR_ARCH_NOT_FOUND);
}

static const struct fx_ask nowhere = {"lib/libtest.so", 0, "gfx900", "no.kpack"};
static const struct fx_ask somewhere = {"lib/libhip.so", 0, "gfx1100", "test_zstd.kpack"};

/* .EnvPathOverride */
TEST(a_path_from_the_environment_replaces, NULL, fx_after)
{
	fx_set_list("ROCM_KPACK_PATH", "test_noop.kpack", "none.kpack");
	fx_loads(&nowhere, &fx_noop[0]);
	fx_loads_not(&somewhere, KPACK_ERROR_ARCH_NOT_FOUND);
}

/* .EnvPathPrefix */
TEST(a_prefix_from_the_environment_adds, NULL, fx_after)
{
	fx_set_list("ROCM_KPACK_PATH_PREFIX", "test_noop.kpack", "none.kpack");
	fx_loads(&nowhere, &fx_noop[0]);
	fx_loads(&somewhere, &fx_zstd[0]);
}

/* .EnvDisable: HRX's UNAVAILABLE corresponds to AMD's NOT_IMPLEMENTED */
TEST(the_environment_switches_off, NULL, fx_after)
{
	setenv("ROCM_KPACK_DISABLE", "1", 1);
	fx_loads_not(&somewhere, KPACK_ERROR_NOT_IMPLEMENTED);
}

/* .InvalidMetadata */
TEST(bad_metadata_is_reported, NULL, fx_after)
{
	check_marker(fx_marker_bytes("\xc1", 1), KPACK_ERROR_INVALID_METADATA);
}

/* ---- KpackIntegration: from a wrapper, as a runtime calls it ---- */

struct wrapper {
	uint32_t magic, version;
	const void *binary;
	void *reserved1;
};

#define HIPK 0x4b504948

static struct wrapper wrapper = {HIPK, 1, NULL, NULL};

/* The call that a runtime makes in __hipRegisterFatBinary. */
static kpack_error_t resolve(const char *arch, void **data, size_t *size)
{
	kpack_cache_t cache = fx_cache();
	char binary[4096];
	kpack_error_t err;

	assert_true(wrapper.magic == HIPK && wrapper.version == 1);
	assert_int_equal(
		kpack_discover_binary_path(&wrapper, binary, sizeof(binary), NULL),
		KPACK_SUCCESS);
	err = kpack_load_code_object(cache, wrapper.binary, binary,
				     (uint32_t)(uintptr_t)wrapper.reserved1, &arch, 1,
				     data, size);
	kpack_cache_destroy(cache);
	return err;
}

/*
 * .HipkWrapperResolvesToElf, .HipkResolvesBundleCodeObject, .HipkReservedSelectsCoIndex,
 * .HipkResolvedGarbageRejected: the runtime judges the bytes, so the third object is
 * returned as it is
 */
TEST(a_wrapper_leads_to_its_code, NULL, fx_after)
{
	static const struct fx_object code[] = {
		{"w#0", "gfx942",
		 "\x7f"
		 "ELF\2\1\1\x40",
		 64, 0},
		{"w#1", "gfx942", "__CLANG_OFFLOAD_BUNDLE__", 4096, 0},
		{"w#2", "gfx942", "garbage", 7, 0},
		{0}};
	struct fx_marker m;
	char path[FX_PATH];

	fx_put_packed("wrapped", "'gfx942'", code);
	m = fx_marker_of("w", fx_path("wrapped", path));
	wrapper.binary = m.at;
	for (uintptr_t i = 0; i < 3; i++) {
		void *data = NULL;
		size_t size = 0;

		wrapper.reserved1 = (void *)i;
		assert_int_equal(resolve(TRIPLE "gfx942:sramecc+:xnack-", &data, &size),
				 KPACK_SUCCESS);
		assert_true(fx_is(data, size, &code[i]));
		kpack_free_code_object(data);
	}
	fx_marker_free(&m);
}

/* .HipkWrapperNoMatchReportsNotFound */
TEST(a_wrapper_without_code_for_the_device_is_not_found, NULL, fx_after)
{
	struct fx_marker m;
	char path[FX_PATH];
	void *data = NULL;
	size_t size;

	m = fx_marker_of("lib/libtest.so", fx_path("test_noop.kpack", path));
	wrapper.binary = m.at;
	wrapper.reserved1 = NULL;
	assert_int_equal(resolve("gfx1100", &data, &size), KPACK_ERROR_ARCH_NOT_FOUND);
	assert_null(data);
	fx_marker_free(&m);
}

SUITE(make_tree, fx_remove);
