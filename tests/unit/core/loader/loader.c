/* SPDX-License-Identifier: MIT */
#include "tests/unit/loading.h"
#include "core/base/bounds.h"
#include <pthread.h>
#include "tests/unit/unit.h"

static void write_plain_archive(void)
{
	struct ab a = ab_new(64);

	ab_put(&a, "KERNEL1_GFX900_DATAKERNEL2_GFX906_DATA", 38);
	ab_toc(&a, "{'gfx_arches': ['gfx900', 'gfx906'], 'blobs': ["
		   "{'offset': 64, 'size': 19}, {'offset': 83, 'size': 19}],"
		   "'toc': {'lib/libtest.so#0': {'gfx900': {'ordinal': 0},"
		   "'gfx906': {'ordinal': 1}}}}");
	write_file("noop.kpack", a.bytes, a.size);
	ab_free(&a);
}

static int make_archives(void **state)
{
	make_dir(state);
	write_plain_archive();
	write_archive("zstd.kpack", "'gfx1100', 'gfx1101'",
		      OBJECTS({"lib/libhip.so#0", "gfx1100", "HIP_KERNEL_GFX1100_"},
			      {"bin/hiptest#0", "gfx1101", "HIPTEST_GFX1101"}));
	write_archive("a.kpack", "'gfx900', 'gfx906'",
		      OBJECTS({"lib/first.so#0", "gfx900", "FIRST_ONLY"},
			      {"lib/split.so#0", "gfx906", "FIRST_OTHER_ARCH"},
			      {"lib/shared.so#0", "gfx900", "FIRST_DUPLICATE"}));
	write_archive("b.kpack", "'gfx900', 'gfx906'",
		      OBJECTS({"lib/first.so#1", "gfx900", "SECOND_INDEX"},
			      {"lib/second.so#0", "gfx900", "SECOND_ONLY"},
			      {"lib/split.so#0", "gfx900", "SECOND_REQUESTED_ARCH"},
			      {"lib/shared.so#0", "gfx900", "SECOND_DUPLICATE"},
			      {"lib/shared.so#0", "gfx906", "SECOND_PREFERRED_ARCH"}));
	write_archive("feature.kpack", "'gfx900:xnack+'",
		      OBJECTS({"lib/shared.so#0", "gfx900:xnack+", "SPECIFIC"}));
	write_archive("damaged.kpack", "'gfx900', 'gfx900:xnack+'",
		      OBJECTS({"lib/shared.so#0", "gfx900", NULL},
			      {"lib/shared.so#0", "gfx900:xnack+", NULL}));
	write_archive("other.kpack", "'gfx906'",
		      OBJECTS({"lib/shared.so#0", "gfx906", "OTHER_ARCH"}));
	write_archive("bare.kpack", "'gfx900'",
		      OBJECTS({"lib/bare.so", "gfx900", "BARE"},
			      {"lib/first.so", "gfx900", "BARE_FIRST"},
			      {"lib/both.so", "gfx900", "WITHOUT_INDEX"},
			      {"lib/both.so#0", "gfx900", "INDEXED"}));
	/* an entry's arch counts only if the archive declares it */
	write_archive("undeclared.kpack", "'gfx906'",
		      OBJECTS({"lib/shared.so#0", "gfx900", "UNDECLARED"}));
	write_archive("x_gfx90a:xnack-.kpack", "'gfx90a:xnack-'",
		      OBJECTS({"lib/libother.so#0", "gfx90a:xnack-", "OTHER"}));
	write_archive("x_gfx90a.kpack", "'gfx90a'",
		      OBJECTS({"lib/libtest.so#0", "gfx90a", "GENERIC_GFX90A"}));
	write_archive("none.kpack", "", (const struct object[]){{0}});
	write_file("text.kpack", "no archive, only text", 21);
	write_file("empty.kpack", "", 0);
	return 0;
}

/* ---- choosing ---- */

#define TRIPLE "amdgcn-amd-amdhsa--"

static const struct request requests[] = {
	{"lib/libtest.so", 0, "gfx900", "noop.kpack", "KERNEL1_GFX900_DATA", 0},
	{"lib/libhip.so", 0, "gfx1100", "zstd.kpack", "HIP_KERNEL_GFX1100_", 0},
	{"lib/libtest.so", 0, TRIPLE "gfx900", "noop.kpack", "KERNEL1_GFX900_DATA", 0},
	{"lib/libtest.so", 0, "gfx906 gfx900", "noop.kpack", "KERNEL2_GFX906_DATA", 0},
	{"lib/libtest.so", 0, "gfx9999 gfx900", "noop.kpack", "KERNEL1_GFX900_DATA", 0},
	{"lib/libtest.so", 0, "gfx900:sramecc+:xnack-", "noop.kpack",
	 "KERNEL1_GFX900_DATA", 0},
	{"lib/libtest.so", 0, "gfx9999", "noop.kpack", NO_ARCH},
	{"lib/libtest.so", 0, "gfx900", "zstd.kpack", NO_ARCH},
	{"lib/libtest.so", 0, "gfx90", "noop.kpack", NO_ARCH},
	{"lib/libtest.so", 0, "gfx900", "none.kpack", NO_ARCH},
	{"lib/libtest.so", 0, "gfx900", "no/such.kpack", NO_ARCHIVE},
	{"lib/libtest.so", 0, "gfx900", "text.kpack empty.kpack .", NO_ARCHIVE},
	{"lib/libtest.so", 999, "gfx900", "noop.kpack", NO_KERNEL},
	{"lib/libtest.so", UINT32_MAX, "gfx900", "noop.kpack", NO_KERNEL},
	/* files that cannot be opened are skipped */
	{"lib/libtest.so", 0, "gfx900", "no.kpack text.kpack empty.kpack . noop.kpack",
	 "KERNEL1_GFX900_DATA", 0},

	/* the placeholder */
	{"lib/libtest.so", 0, "gfx90a:sramecc+:xnack-", "x_@GFXARCH@.kpack",
	 "GENERIC_GFX90A", 0},
	{"lib/libother.so", 0, "gfx90a:sramecc+:xnack-", "x_@GFXARCH@.kpack", "OTHER", 0},
	{"lib/libother.so", 0, "gfx90a:xnack+", "x_@GFXARCH@.kpack", NO_KERNEL},
	{"lib/libother.so", 0, "gfx9999 " TRIPLE "gfx90a:xnack-", "x_@GFXARCH@.kpack",
	 "OTHER", 0},
	{"lib/libother.so", 0, "gfx9999", "x_@GFXARCH@.kpack", NO_ARCHIVE},

	/* an archive without the kernel */
	{"lib/libtest.so", 0, "gfx90a:xnack-", "x_gfx90a:xnack-.kpack x_gfx90a.kpack",
	 "GENERIC_GFX90A", 0},

	/* several archives offer the same architecture */
	{"lib/first.so", 0, "gfx900", "a.kpack b.kpack", "FIRST_ONLY", 0},
	{"lib/second.so", 0, "gfx900", "a.kpack b.kpack", "SECOND_ONLY", 0},
	{"lib/split.so", 0, "gfx900", "a.kpack b.kpack", "SECOND_REQUESTED_ARCH", 0},
	{"lib/first.so", 1, "gfx900", "a.kpack b.kpack", "SECOND_INDEX", 0},
	{"lib/shared.so", 0, "gfx900", "a.kpack b.kpack", "FIRST_DUPLICATE", 0},
	{"lib/shared.so", 0, "gfx900", "b.kpack a.kpack", "SECOND_DUPLICATE", 0},
	{"lib/shared.so", 0, "gfx906 gfx900", "a.kpack b.kpack", "SECOND_PREFERRED_ARCH",
	 0},
	{"lib/second.so", 0, TRIPLE "gfx900:xnack+", "feature.kpack b.kpack",
	 "SECOND_ONLY", 0},
	{"lib/shared.so", 0, "gfx900:xnack+", "a.kpack feature.kpack", "SPECIFIC", 0},
	{"lib/shared.so", 0, "gfx900:xnack-", "feature.kpack", NO_ARCH},
	{"lib/shared.so", 0, "gfx900", "feature.kpack", NO_ARCH},
	{"lib/absent.so", 0, "gfx900", "a.kpack b.kpack", NO_KERNEL},
	{"lib/absent.so", 0, "gfx9999", "a.kpack b.kpack", NO_ARCH},
	{"lib/shared.so", 0, "gfx900", "undeclared.kpack", NO_ARCH},

	/* a damaged object does not keep other archives from answering */
	{"lib/shared.so", 0, "gfx900", "damaged.kpack a.kpack", "FIRST_DUPLICATE", 0},
	{"lib/shared.so", 0, "gfx900", "a.kpack damaged.kpack", "FIRST_DUPLICATE", 0},
	{"lib/shared.so", 0, "gfx900:xnack+", "damaged.kpack feature.kpack", "SPECIFIC",
	 0},
	{"lib/shared.so", 0, "gfx900:xnack+", "damaged.kpack a.kpack", "FIRST_DUPLICATE",
	 0},
	{"lib/shared.so", 0, "gfx900 gfx906", "damaged.kpack b.kpack", "SECOND_DUPLICATE",
	 0},
	{"lib/shared.so", 0, "gfx900 gfx906", "damaged.kpack other.kpack", "OTHER_ARCH",
	 0},
	/* but the damage is the result if no archive answers, whatever else is found */
	{"lib/shared.so", 0, "gfx900", "damaged.kpack", DAMAGE},
	{"lib/shared.so", 0, "gfx900", "damaged.kpack noop.kpack", DAMAGE},
	{"lib/shared.so", 0, "gfx900", "noop.kpack damaged.kpack no.kpack", DAMAGE},
	{"lib/shared.so", 0, "gfx900 gfx9999", "damaged.kpack", DAMAGE},
	{"lib/shared.so", 0, "gfx900:xnack+ gfx906", "damaged.kpack a.kpack",
	 "FIRST_DUPLICATE", 0},

	/* keys without an index */
	{"lib/bare.so", 0, "gfx900", "bare.kpack", "BARE", 0},
	{"lib/bare.so", 1, "gfx900", "bare.kpack", NO_KERNEL},
	{"lib/first.so", 0, "gfx900", "bare.kpack a.kpack", "BARE_FIRST", 0},
	{"lib/first.so", 0, "gfx900", "a.kpack bare.kpack", "FIRST_ONLY", 0},
	{"lib/both.so", 0, "gfx900", "bare.kpack", "INDEXED", 0},
};

TEST(objects_are_chosen_by_amds_rules)
{
	kpack_cache_t cache = new_cache();

	for (size_t i = 0; i < COUNT(requests); i++)
		check_alone(&requests[i]);
	/* what was opened before changes nothing */
	for (size_t i = 0; i < 2 * COUNT(requests); i++)
		check(cache, &requests[i % COUNT(requests)]);
	for (size_t i = COUNT(requests); i-- > 0;)
		check(cache, &requests[i]);
	kpack_cache_destroy(cache);
}

/* NULL and empty ones do not count, and any number is taken, as if a caller passed every GPU of a table. */
TEST(archs_may_be_null_and_many)
{
	enum { N = 5000 };
	static char text[N][64];
	static const char *archs[N];
	struct marker m = marker_of("lib/libtest.so", "x_@GFXARCH@.kpack");
	kpack_cache_t cache = new_cache();
	void *data = NULL;
	size_t size = 0;

	for (int i = 2; i < N; i++) {
		snprintf(text[i], sizeof(text[i]), "gfx%d:sramecc+:xnack-", 10000 + i);
		archs[i] = text[i];
	}
	archs[1] = "";
	assert_int_equal(kpack_load_code_object(cache, m.at, in_dir("fake.so"), 0, archs,
						2, &data, &size),
			 KPACK_ERROR_ARCHIVE_NOT_FOUND);
	assert_null(data);
	archs[N - 1] = "gfx90a:xnack-";
	assert_int_equal(kpack_load_code_object(cache, m.at, in_dir("fake.so"), 0, archs,
						N, &data, &size),
			 KPACK_SUCCESS);
	assert_memory_equal(data, "GENERIC_GFX90A", 14);
	kpack_free_code_object(data);
	marker_free(&m);
	kpack_cache_destroy(cache);
}

TEST(too_many_archives_are_refused)
{
	static const struct {
		const char *variable;
		int n;
		kpack_error_t code;
	} cases[] = {
		{"ROCM_KPACK_PATH_PREFIX", KP_SEARCH_FILES_MAX,
		 KPACK_ERROR_INVALID_ARGUMENT}, /* the marker adds one path */
		{"ROCM_KPACK_PATH", KP_SEARCH_FILES_MAX, KPACK_ERROR_ARCHIVE_NOT_FOUND},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char *list = missing_files(cases[i].n);

		setenv(cases[i].variable, list, 1);
		check_alone(&(struct request){"a", 0, "gfx900", "no.kpack", NULL,
					      cases[i].code});
		unsetenv(cases[i].variable);
		free(list);
	}
}

/* ---- arguments ---- */

TEST(arguments_that_are_null_are_refused)
{
	kpack_cache_t cache = new_cache();
	const char *archs[] = {"gfx900"};
	struct marker m = marker_of("lib/libtest.so", "noop.kpack");
	void *data = NULL;
	size_t size = 0;
	const struct {
		kpack_cache_t cache;
		const void *marker;
		const char *binary;
		const char *const *archs;
		size_t n;
		void **data;
		size_t *size;
	} cases[] = {
		{NULL, m.at, "/x", archs, 1, &data, &size},
		{cache, NULL, "/x", archs, 1, &data, &size},
		{cache, m.at, NULL, archs, 1, &data, &size},
		{cache, m.at, "/x", NULL, 1, &data, &size},
		{cache, m.at, "/x", archs, 0, &data, &size},
		{cache, m.at, "/x", archs, 1, NULL, &size},
		{cache, m.at, "/x", archs, 1, &data, NULL},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct kpackx_error why = {0};

		assert_int_equal(kpackx_load_code_object(
					 cases[i].cache, cases[i].marker, cases[i].binary,
					 0, cases[i].archs, cases[i].n, cases[i].data,
					 cases[i].size, &why),
				 KPACK_ERROR_INVALID_ARGUMENT);
		assert_true(why.code == KPACK_ERROR_INVALID_ARGUMENT && why.text[0]);
		assert_true(!data && size == 0);
	}
	assert_int_equal(kpack_cache_create(NULL), KPACK_ERROR_INVALID_ARGUMENT);
	kpack_cache_destroy(NULL);
	kpack_free_code_object(NULL);
	marker_free(&m);
	kpack_cache_destroy(cache);
}

static void check_marker(const void *at, kpack_error_t want)
{
	kpack_cache_t cache = new_cache();
	const char *archs[] = {"gfx900"};
	struct kpackx_error why = {0};
	void *data = NULL;
	size_t size;
	kpack_error_t err;

	err = kpackx_load_code_object(cache, at, in_dir("fake.so"), 0, archs, 1, &data,
				      &size, &why);
	if (err != want || why.code != want)
		fail_msg("%s, not %s: %s", kpackx_error_name(err),
			 kpackx_error_name(want), why.text);
	kpack_free_code_object(data);
	kpack_cache_destroy(cache);
}

TEST(markers_must_be_whole)
{
	static const char *const bad[] = {
		"{'kpack_search_paths': ['noop.kpack']}",
		"{'kernel_name': 'lib/libtest.so'}",
		"{'kernel_name': 'lib/libtest.so', 'kpack_search_paths': []}",
		"{'kernel_name': 'lib/libtest.so', 'kpack_search_paths': [1, nil]}",
		"{'kernel_name': 12345, 'kpack_search_paths': ['noop.kpack']}",
		"{'kernel_name': 'lib/libtest.so', 'kpack_search_paths': 'noop.kpack'}",
		"{'kernel_name': 'a~b', 'kpack_search_paths': ['noop.kpack']}",
		"['lib/libtest.so', 'noop.kpack']",
		"7",
		"nil",
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct marker m = marker(bad[i]);

		check_marker(m.at, KPACK_ERROR_INVALID_METADATA);
		marker_free(&m);
	}
	check_marker("this is not valid msgpack data!", KPACK_ERROR_INVALID_METADATA);
}

TEST(markers_are_not_read_beyond_their_memory)
{
	struct marker m = marker_of("lib/libtest.so", "noop.kpack");
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t size = (size_t)(m.pages + page - m.at);

	check_marker(m.at, KPACK_SUCCESS);
	/* truncated at every byte */
	for (size_t n = 0; n < size; n++) {
		char *at = m.pages + page - n;

		memmove(at, m.at, n);
		check_marker(at, KPACK_ERROR_INVALID_METADATA);
		marker_free(&m);
		m = marker_of("lib/libtest.so", "noop.kpack");
	}
	check_marker(m.pages + page, KPACK_ERROR_INVALID_METADATA);
	check_marker((void *)8, KPACK_ERROR_INVALID_METADATA);
	check_marker((void *)UINTPTR_MAX, KPACK_ERROR_INVALID_METADATA);
	marker_free(&m);
}

/* ---- the environment ---- */

#define FIRST                                                                            \
	{                                                                                \
		"lib/first.so", 0, "gfx900", "no", "FIRST_ONLY", 0                       \
	}
#define SHARED(paths, data)                                                              \
	{                                                                                \
		"lib/shared.so", 0, "gfx900", paths, data, 0                             \
	}
#define DAMAGED(archs, paths, data)                                                      \
	{                                                                                \
		"lib/shared.so", 0, archs, "damaged.kpack " paths, data,                 \
			(data) ? 0 : KPACK_ERROR_DECOMPRESSION_FAILED                    \
	}
#define MISSING                                                                          \
	{                                                                                \
		"lib/shared.so", 0, "gfx900", "b.kpack", NULL,                           \
			KPACK_ERROR_ARCHIVE_NOT_FOUND                                    \
	}
#define OTHER                                                                            \
	{                                                                                \
		"lib/libother.so", 0, "gfx90a:xnack-", "no.kpack", "OTHER", 0            \
	}
#define OFF                                                                              \
	{                                                                                \
		"lib/shared.so", 0, "gfx900", "b.kpack", NULL,                           \
			KPACK_ERROR_NOT_IMPLEMENTED                                      \
	}

/* @ stands for the directory of the archives */
static const struct {
	const char *variable, *value;
	struct request request;
} settings[] = {
	{"PATH", "@/a.kpack", SHARED("no.kpack", "FIRST_DUPLICATE")},
	{"PATH", "@/a.kpack", SHARED("b.kpack", "FIRST_DUPLICATE")},
	{"PATH", "/no/such:@/a.kpack:@/b.kpack", SHARED("b.kpack", "FIRST_DUPLICATE")},
	{"PATH", "@/a.kpack::@/a.kpack", SHARED("b.kpack", "FIRST_DUPLICATE")},
	{"PATH", ":::@/a.kpack:", SHARED("b.kpack", "FIRST_DUPLICATE")},
	{"PATH", "/no/such", MISSING},
	/* the placeholder is not replaced */
	{"PATH", "@/x_@GFXARCH@.kpack", MISSING},
	{"PATH", "", SHARED("b.kpack", "SECOND_DUPLICATE")},
	{"PATH", ":::", SHARED("b.kpack", "SECOND_DUPLICATE")},
	/* escaped colons in a path; other bytes behind a backslash stay */
	{"PATH", "@/x_gfx90a\\:xnack-.kpack", OTHER},
	{"PATH", "/a\\:b:@/x_gfx90a\\:xnack-.kpack:", OTHER},
	{"PATH", "@/a\\\\b\\", FIRST},
	/* and plain ones, if the whole is there and its part is not */
	{"PATH", "@/x_gfx90a:xnack-.kpack", OTHER},
	{"PATH", "/no:@/x_gfx90a:xnack-.kpack:@/a.kpack", OTHER},
	{"PATH", "@/b.kpack:@/x_gfx90a:xnack-.kpack", OTHER},
	{"PATH", "@/x_gfx90a::xnack-.kpack", MISSING},
	{"PATH", "@/x_gfx90a:xnack-:.kpack", MISSING},
	{"PATH_PREFIX", "/no:@/x_gfx90a:xnack-.kpack:", OTHER},
	/* a prefix comes before the search paths */
	{"PATH_PREFIX", "@/a.kpack", SHARED("b.kpack", "FIRST_DUPLICATE")},
	{"PATH_PREFIX",
	 "@/a.kpack",
	 {"lib/second.so", 0, "gfx900", "b.kpack", "SECOND_ONLY", 0}},
	{"PATH_PREFIX", "/no/such:", SHARED("b.kpack", "SECOND_DUPLICATE")},
	{"DISABLE", "1", OFF},
	{"DISABLE", "no", OFF},
	{"DISABLE", "0", SHARED("b.kpack", "SECOND_DUPLICATE")},
	{"DISABLE", "01", SHARED("b.kpack", "SECOND_DUPLICATE")},
	{"DISABLE", "", SHARED("b.kpack", "SECOND_DUPLICATE")},
	/* damage is final, of the archive that was chosen */
	{"STRICT", "1", DAMAGED("gfx900", "a.kpack", NULL)},
	{"STRICT", "yes", DAMAGED("gfx900", "a.kpack", NULL)},
	{"STRICT", "0", DAMAGED("gfx900", "a.kpack", "FIRST_DUPLICATE")},
	{"STRICT", "", DAMAGED("gfx900", "a.kpack", "FIRST_DUPLICATE")},
	{"STRICT", "1", DAMAGED("gfx900:xnack+", "a.kpack", NULL)},
	{"STRICT", "1", DAMAGED("gfx900:xnack+", "feature.kpack", NULL)},
	{"STRICT", "1", DAMAGED("gfx900 gfx906", "b.kpack", "SECOND_PREFERRED_ARCH")},
	{"STRICT", "1", DAMAGED("gfx900 gfx906", "a.kpack", NULL)},
	{"STRICT", "1", SHARED("a.kpack damaged.kpack", "FIRST_DUPLICATE")},
	/* archives without the key, and files that cannot be opened, were not chosen */
	{"STRICT", "1",
	 SHARED("no.kpack text.kpack noop.kpack a.kpack", "FIRST_DUPLICATE")},
	{"STRICT",
	 "1",
	 {"lib/absent.so", 0, "gfx900", "damaged.kpack a.kpack", NO_KERNEL}},
};

TEST(the_environment_decides)
{
	char name[64];

	assert_int_equal(link(in_dir("a.kpack"), in_dir("a\\\\b\\")), 0);
	for (size_t i = 0; i < COUNT(settings); i++) {
		snprintf(name, sizeof(name), "ROCM_KPACK_%s", settings[i].variable);
		check_with(name, settings[i].value, &settings[i].request);
	}
	unlink(in_dir("a\\\\b\\"));
	/* a list makes the prefix not count */
	setenv("ROCM_KPACK_PATH_PREFIX", "/ignored", 1);
	check_with("ROCM_KPACK_PATH", "@/a.kpack", &settings[0].request);
	unsetenv("ROCM_KPACK_PATH_PREFIX");
	/* checked before the marker is read */
	setenv("ROCM_KPACK_DISABLE", "1", 1);
	check_marker("test", KPACK_ERROR_NOT_IMPLEMENTED);
	unsetenv("ROCM_KPACK_DISABLE");
}

TEST(the_environment_is_read_once)
{
	kpack_cache_t cache = new_cache();

	setenv("ROCM_KPACK_DISABLE", "1", 1);
	setenv("ROCM_KPACK_PATH", "/no/such", 1);
	check(cache, &requests[0]);
	unsetenv("ROCM_KPACK_DISABLE");
	unsetenv("ROCM_KPACK_PATH");
	kpack_cache_destroy(cache);
}

/* ---- the reason in words ---- */

#define DEEP "directory/directory/directory/directory/directory/"

TEST(the_reason_names_what_is_missing_and_where)
{
	static const struct {
		struct request request;
		const char *text;
	} cases[] = {
		{{"lib/libtest.so", 999, "gfx900 gfx906", "no.kpack noop.kpack",
		  NO_KERNEL},
		 "no lib/libtest.so#999 for gfx900, gfx906; @/noop.kpack offers gfx900 "
		 "gfx906; no file @/no.kpack"},
		{{"lib/libtest.so", 0, "gfx9999", "no.kpack text.kpack none.kpack",
		  NO_ARCH},
		 "no archive offers gfx9999; @/none.kpack offers nothing; @/text.kpack: "
		 "header: not a kpack archive (magic 6e6f2061); no file @/no.kpack"},
		{{"lib/libtest.so", 0, "gfx9999", "no.kpack empty.kpack", NO_ARCHIVE},
		 "no archive to look for lib/libtest.so#0 in; @/empty.kpack: header: the "
		 "file is empty; no file @/no.kpack"},
		{{"a\nb", 0, "a\\b", "a\nb", NO_ARCHIVE},
		 "no archive to look for a\\012b#0 in; no file @/a; no file @/b"},
		/* of long names the end is shown */
		{{"lib/libtest.so", 0, "gfx900", DEEP DEEP "name.kpack", NO_ARCHIVE},
		 "no archive to look for lib/libtest.so#0 in; no file .../" DEEP
		 "name.kpack"},
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		check_text(&cases[i].request, cases[i].text);
}

TEST(the_reason_of_damage_names_the_archive)
{
	kpack_cache_t cache = new_cache();
	struct request r = {"lib/shared.so", 0, "gfx900 gfx906",
			    "noop.kpack damaged.kpack damaged2.kpack", DAMAGE};
	struct kpackx_error why = {0};
	const char *want;
	void *data = NULL;
	size_t size;

	write_archive("damaged2.kpack", "'gfx900'",
		      OBJECTS({"lib/shared.so#0", "gfx900", NULL}));
	assert_int_equal(ask(cache, &r, &data, &size, &why), r.code);
	want = in_dir("damaged.kpack: lib/shared.so#0 gfx900: ");
	assert_int_equal(strncmp(why.text, want, strlen(want)), 0);
	kpack_cache_destroy(cache);
}

/* ---- open files ---- */

TEST(archives_that_are_not_needed_are_not_opened)
{
	kpack_cache_t cache = new_cache();

	check(cache, &(struct request){"lib/first.so", 0, "gfx900", "a.kpack b.kpack",
				       "FIRST_ONLY", 0});
	assert_int_equal(count_open("b.kpack"), 0);
	check(cache, &(struct request){"lib/second.so", 0, "gfx900", "a.kpack b.kpack",
				       "SECOND_ONLY", 0});
	assert_int_equal(count_open("b.kpack"), 1);
	kpack_cache_destroy(cache);
}

/* ---- threads ---- */

struct worker {
	kpack_cache_t cache;
	const struct request *request;
	int rounds;
	int good;
};

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < w->rounds; i++) {
		void *data = NULL;
		size_t size = 0;

		if (ask(w->cache, w->request, &data, &size, NULL) == w->request->code &&
		    (!w->request->data || memcmp(data, w->request->data, size) == 0))
			w->good++;
		kpack_free_code_object(data);
	}
	return NULL;
}

TEST(threads_ask_for_all_at_once)
{
	kpack_cache_t cache = new_cache();
	struct worker workers[COUNT(requests)];
	pthread_t threads[COUNT(workers)];

	for (size_t i = 0; i < COUNT(workers); i++) {
		workers[i] = (struct worker){cache, &requests[i], 5, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (size_t i = 0; i < COUNT(workers); i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(workers[i].good, 5);
	}
	assert_int_equal(count_open("a.kpack"), 1);
	kpack_cache_destroy(cache);
}

/* ---- architectures ---- */

struct archs {
	char text[256];
	size_t stop_at, n;
};

static bool collect(const char *arch, void *user_data)
{
	struct archs *a = user_data;

	text_add(a->text, sizeof(a->text), "%s ", arch);
	return ++a->n != a->stop_at;
}

static kpack_error_t enumerate(const char *name, struct archs *a)
{
	return kpack_enumerate_architectures(in_dir(name), collect, a);
}

TEST(architectures_are_enumerated)
{
	struct archs all = {0}, one = {.stop_at = 1}, none = {0};

	assert_int_equal(enumerate("noop.kpack", &all), KPACK_SUCCESS);
	assert_string_equal(all.text, "gfx900 gfx906 ");
	assert_int_equal(enumerate("noop.kpack", &one), KPACK_SUCCESS);
	assert_string_equal(one.text, "gfx900 ");
	assert_int_equal(enumerate("none.kpack", &none), KPACK_SUCCESS);
	assert_int_equal(enumerate("no/such", &none), KPACK_ERROR_FILE_NOT_FOUND);
	assert_int_equal(enumerate("text.kpack", &none), KPACK_ERROR_INVALID_FORMAT);
	assert_int_equal(kpack_enumerate_architectures(NULL, collect, &none),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_enumerate_architectures("/no/such", NULL, &none),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(none.n, 0);
	assert_int_equal(count_open("noop.kpack"), 0);
}

/* ---- the file behind an address ---- */

static const char constant[] = "in this program";

TEST(this_program_is_found)
{
	char path[4096] = "", self[4096] = "";
	size_t offset = 0;
	char bytes[sizeof(constant)];
	int fd;

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	assert_int_equal(kpack_discover_binary_path(constant, path, sizeof(path), NULL),
			 KPACK_SUCCESS);
	assert_string_equal(path, self);
	assert_int_equal(
		kpack_discover_binary_path(constant, path, sizeof(path), &offset),
		KPACK_SUCCESS);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, bytes, sizeof(bytes), (off_t)offset), sizeof(bytes));
	assert_memory_equal(bytes, constant, sizeof(bytes));
	close(fd);
}

TEST(paths_need_room)
{
	char path[4096] = "", small[4096] = "untouched";
	size_t n, offset = 7;

	assert_int_equal(kpack_discover_binary_path(constant, path, sizeof(path), NULL),
			 KPACK_SUCCESS);
	n = strlen(path);
	assert_int_equal(kpack_discover_binary_path(constant, small, n, &offset),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_discover_binary_path(constant, small, 1, &offset),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_true(strcmp(small, "untouched") == 0 && offset == 7);
	assert_int_equal(kpack_discover_binary_path(constant, small, n + 1, &offset),
			 KPACK_SUCCESS);
	assert_string_equal(small, path);
	assert_int_equal(kpack_discover_binary_path(NULL, path, sizeof(path), NULL),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_discover_binary_path(constant, NULL, 10, NULL),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kpack_discover_binary_path(constant, path, 0, NULL),
			 KPACK_ERROR_INVALID_ARGUMENT);
}

SUITE(make_archives, remove_dir);
