/* SPDX-License-Identifier: MIT */
#include "core/binary/search_path.h"
#include "core/base/bounds.h"
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- targets ---- */

struct seen {
	char text[512]; /* targets, each followed by a space */
	size_t stop_at; /* stop after this many; 0: never */
	size_t n;
};

static bool note(struct kp_span target, void *arg)
{
	struct seen *s = arg;
	size_t used = strlen(s->text);

	assert_int_equal(strlen((const char *)target.data), target.size);
	snprintf(s->text + used, sizeof(s->text) - used, "%s ", target.data);
	return ++s->n != s->stop_at;
}

static struct seen targets_of(const char *arch, size_t stop_at)
{
	struct seen s = {.stop_at = stop_at};

	kp_search_targets(kp_span_str(arch), note, &s);
	return s;
}

#define TRIPLE "amdgcn-amd-amdhsa--"

TEST(targets_are_the_subsets_of_the_features)
{
	static const struct {
		const char *arch, *targets;
	} cases[] = {
		{"gfx1100", "gfx1100 "},
		{"gfx1201", "gfx1201 "},
		{TRIPLE "gfx1201", "gfx1201 "},
		{"gfx11-generic", "gfx11-generic "},
		{TRIPLE "gfx11-generic", "gfx11-generic "},
		{"gfx90a:sramecc+:xnack-",
		 "gfx90a:sramecc+:xnack- gfx90a:sramecc+ gfx90a:xnack- gfx90a "},
		{TRIPLE "gfx942:sramecc+:xnack-",
		 "gfx942:sramecc+:xnack- gfx942:sramecc+ gfx942:xnack- gfx942 "},
		{"gfx90a:sramecc-:xnack+",
		 "gfx90a:sramecc-:xnack+ gfx90a:sramecc- gfx90a:xnack+ gfx90a "},
		{"gfx950:xnack+:sramecc+",
		 "gfx950:xnack+:sramecc+ gfx950:xnack+ gfx950:sramecc+ gfx950 "},
		{"gfx90a:xnack-", "gfx90a:xnack- gfx90a "},
		{"gfx906:sramecc+", "gfx906:sramecc+ gfx906 "},
		{"a:x:y:z", "a:x:y:z a:x:y a:x:z a:x a:y:z a:y a:z a "},
		{"a::x:", "a:x a "},
		{"a:::", "a "},
		/* features after the fourth are ignored */
		{"a:1:2:3:4:5", "a:1:2:3:4 a:1:2:3 a:1:2:4 a:1:2 a:1:3:4 a:1:3 a:1:4 a:1 "
				"a:2:3:4 a:2:3 a:2:4 a:2 a:3:4 a:3 a:4 a "},
		{"", ""},
		{TRIPLE, ""},
		{":xnack+", ""},
		{TRIPLE ":xnack+", ""},
		/* only at the beginning, and only once */
		{"x" TRIPLE "a", "x" TRIPLE "a "},
		{TRIPLE TRIPLE "a", TRIPLE "a "},
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(targets_of(cases[i].arch, 0).text, cases[i].targets);
}

TEST(the_caller_stops_at_a_target)
{
	const char *arch = "gfx90a:sramecc+:xnack-";

	assert_string_equal(targets_of(arch, 1).text, "gfx90a:sramecc+:xnack- ");
	assert_string_equal(targets_of(arch, 3).text,
			    "gfx90a:sramecc+:xnack- gfx90a:sramecc+ gfx90a:xnack- ");
	assert_string_equal(targets_of("gfx1100", 1).text, "gfx1100 ");
}

static bool count(struct kp_span target, void *arg)
{
	++*(size_t *)arg;
	return true;
}

TEST(long_archs_have_no_targets)
{
	char arch[KP_NAME_MAX + 2];
	size_t n = 0;

	memset(arch, 'a', sizeof(arch));
	arch[KP_NAME_MAX / 2] = ':';
	kp_search_targets((struct kp_span){(uint8_t *)arch, KP_NAME_MAX + 1}, count, &n);
	assert_int_equal(n, 0);
	kp_search_targets((struct kp_span){(uint8_t *)arch, KP_NAME_MAX}, count, &n);
	assert_int_equal(n, 2);
	kp_search_targets((struct kp_span){0}, count, &n);
	assert_int_equal(n, 2);
}

/* ---- paths ---- */

/*
 * The directory tree in which the tests run:
 *   real/deep/lib/        link -> real/deep/lib      real/deep/.kpack/a.kpack
 *   .kpack/a.kpack        loop -> loop               file
 */
static char root[] = "/tmp/kpack-search-XXXXXX";

static void make_file(const char *path)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fclose(f);
}

static int enter_tree(void **state)
{
	char *real;

	assert_non_null(mkdtemp(root));
	assert_int_equal(chdir(root), 0);
	real = getcwd(NULL, 0);
	assert_non_null(real);
	assert_true(strlen(real) < sizeof(root));
	assert_string_equal(real, root);
	free(real);
	assert_int_equal(mkdir("real", 0755) | mkdir("real/deep", 0755) |
				 mkdir("real/deep/lib", 0755) |
				 mkdir("real/deep/.kpack", 0755) | mkdir(".kpack", 0755),
			 0);
	assert_int_equal(symlink("real/deep/lib", "link") | symlink("loop", "loop"), 0);
	make_file("real/deep/.kpack/a.kpack");
	make_file(".kpack/a.kpack");
	make_file("file");
	return 0;
}

static int leave_tree(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static char *resolve(const char *pattern, const char *arch, const char *binary)
{
	struct kpackx_error why = {0};
	char *path = NULL;

	if (kp_search_resolve(pattern, kp_span_str(arch), binary, NULL, &path, &why))
		fail_msg("%s: %s", pattern, why.text);
	return path;
}

/* WANT is below the tree if BELOW is set, else it is the exact path. */
static void check(const char *pattern, const char *binary, const char *want, bool below)
{
	char full[KP_NAME_MAX];
	char *path = resolve(pattern, "gfx942", binary);

	snprintf(full, sizeof(full), "%s%s%s", below ? root : "",
		 below && *want ? "/" : "", want);
	if (strcmp(path, full) != 0)
		fail_msg("%s from %s: %s, not %s", pattern, binary, path, full);
	free(path);
}

TEST(paths_start_at_the_binarys_directory)
{
	check("../.kpack/a.kpack", "real/x.so", ".kpack/a.kpack", true);
	check(".kpack/a.kpack", "x.so", ".kpack/a.kpack", true);
	check("../.kpack/a.kpack", "./real//x.so", ".kpack/a.kpack", true);
	check("./.kpack/./a.kpack", "real/../x.so", ".kpack/a.kpack", true);
	check("a.kpack", "real/deep/.kpack/x.so", "real/deep/.kpack/a.kpack", true);
	/* the binary's file name does not matter */
	check("../.kpack/a.kpack", "real/", ".kpack/a.kpack", true);
	check(".kpack/a.kpack", "", ".kpack/a.kpack", true);
	check("", "real/x.so", "real", true);
}

TEST(a_linked_directory_leads_beside_its_target)
{
	check("../.kpack/a.kpack", "link/x.so", "real/deep/.kpack/a.kpack", true);
	/* also for a file that does not exist */
	check("../.kpack/b.kpack", "link/x.so", "real/deep/.kpack/b.kpack", true);
	check("../none/b.kpack", "link/x.so", "real/deep/none/b.kpack", true);
	check("../../../.kpack/b.kpack", "link/x.so", ".kpack/b.kpack", true);
	check("../link/../.kpack/b.kpack", "real/x.so", "real/deep/.kpack/b.kpack", true);
}

TEST(what_is_missing_is_resolved_by_its_spelling)
{
	check("none/../.kpack/b.kpack", "real/x.so", "real/.kpack/b.kpack", true);
	check("none/./c//d/../../e", "real/x.so", "real/none/e", true);
	check("none/..", "real/x.so", "real", true);
	check("none/../..", "real/x.so", "", true);
	/* after a missing component, later links are not followed */
	check("none/../link/a", "x.so", "link/a", false);
	check("../none/../link/../a", "real/x.so", "a", true);
	/* a file is not a directory, a loop cannot be resolved */
	check("../file/../a", "real/x.so", "a", true);
	check("../loop/../a", "real/x.so", "a", true);
	check("../loop", "real/x.so", "loop", true);
}

TEST(a_linked_archive_keeps_its_name)
{
	assert_int_equal(symlink("a.kpack", "real/deep/.kpack/linked.kpack") |
				 symlink("nowhere", "real/deep/.kpack/broken.kpack"),
			 0);
	check("../.kpack/linked.kpack", "link/x.so", "real/deep/.kpack/linked.kpack",
	      true);
	check("../.kpack/broken.kpack", "link/x.so", "real/deep/.kpack/broken.kpack",
	      true);
	/* a path that does not end in a name is resolved completely */
	check("../../link/.", "real/deep/x.so", "real/deep/lib", true);
	check("../../link/", "real/deep/x.so", "real/deep/lib", true);
}

/* One memo for many directories: earlier results do not affect later ones. */
TEST(directories_are_remembered_by_their_spelling)
{
	static const struct {
		const char *pattern, *binary, *want;
	} cases[] = {
		{"../.kpack/a", "link/x.so", "real/deep/.kpack/a"},
		{"../.kpack/b", "link/x.so", "real/deep/.kpack/b"},
		{"../.kpack/a", "real/x.so", ".kpack/a"},
		{"../none/a", "real/x.so", "none/a"},
		{"../none/b", "real/x.so", "none/b"},
		{"..", "real/deep/x.so", "real"},
		{"../.kpack/b", "link/x.so", "real/deep/.kpack/b"},
	};
	struct kp_search_memo memo = {0};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char *path = NULL, want[128];

		snprintf(want, sizeof(want), "%s/%s", root, cases[i].want);
		assert_int_equal(kp_search_resolve(cases[i].pattern, (struct kp_span){0},
						   cases[i].binary, &memo, &path, NULL),
				 KPACK_SUCCESS);
		assert_string_equal(path, want);
		free(path);
	}
	kp_search_memo_fini(&memo);
	kp_search_memo_fini(&memo);
}

/* A directory removed after it was opened: the kernel reaches it, but no name does. */
TEST(what_has_no_name_any_more_costs_one_component)
{
	char binary[64], want[64];
	int fd;

	assert_int_equal(mkdir("gone", 0755), 0);
	fd = open("gone", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(rmdir("gone"), 0);
	snprintf(binary, sizeof(binary), "/proc/self/fd/%d/x.so", fd);
	snprintf(want, sizeof(want), "/proc/%d/fd/%d/a.kpack", (int)getpid(), fd);
	check("a.kpack", binary, want, false);
	close(fd);
}

TEST(without_anything_there_paths_stay_relative)
{
	check("a.kpack", "none/x.so", "none/a.kpack", false);
	check("../a.kpack", "none/x.so", "a.kpack", false);
	check("../../a.kpack", "none/x.so", "../a.kpack", false);
	check("../../../../a", "none/x.so", "../../../a", false);
	check("..", "none/x.so", ".", false);
	check("b.kpack", "x.so", "b.kpack", false);
	check("../../a.kpack", "/none/x.so", "/a.kpack", false);
	check("../../../a", "/x.so", "/a", false);
}

TEST(absolute_paths_stay_as_they_are)
{
	check("/a/../b//c.kpack", "real/x.so", "/a/../b//c.kpack", false);
	check("/k/@GFXARCH@.kpack", "real/x.so", "/k/gfx942.kpack", false);
	check("/", "x.so", "/", false);
}

TEST(the_first_placeholder_stands_for_the_arch)
{
	static const struct {
		const char *pattern, *arch, *want;
	} cases[] = {
		{"/k/b_@GFXARCH@.kpack", "gfx90a:xnack+", "/k/b_gfx90a:xnack+.kpack"},
		{"/@GFXARCH@/@GFXARCH@", "a", "/a/@GFXARCH@"},
		{"/@GFXARCH@@GFXARCH@", "@GFXARCH@", "/@GFXARCH@@GFXARCH@"},
		{"/@GFXARCH@", "", "/"},
		{"/@GFXARCH", "a", "/@GFXARCH"},
		{"/@gfxarch@", "a", "/@gfxarch@"},
		{"@GFXARCH@/x", "a", "none/a/x"},
		{"@GFXARCH@", "/a", "none/a"}, /* the pattern was relative */
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char *path = resolve(cases[i].pattern, cases[i].arch, "none/x.so");

		assert_string_equal(path, cases[i].want);
		free(path);
	}
	assert_true(kp_search_has_arch("a@GFXARCH@"));
	assert_false(kp_search_has_arch("a@GFXARCH"));
}

TEST(a_placeholder_in_the_binarys_path_is_a_name)
{
	check("@GFXARCH@", "none@GFXARCH@/x.so", "none@GFXARCH@/gfx942", false);
}

TEST(many_components_are_resolved)
{
	char pattern[KP_NAME_MAX + 1] = "";

	for (size_t i = 0; i + 2 < sizeof(pattern); i += 2)
		memcpy(pattern + i, "./", 2);
	pattern[KP_NAME_MAX] = '\0';
	check(pattern, "x.so", "", true);
	memcpy(pattern + KP_NAME_MAX - 6, "a/../b", 6);
	check(pattern, "x.so", "b", true);
	memcpy(pattern + 2000, "a/b/", 4);
	check(pattern, "x.so", "a/b/b", true);
}

TEST(long_paths_are_refused)
{
	char pattern[KP_NAME_MAX + 2], binary[KP_NAME_MAX + 2];
	struct kpackx_error why = {0};
	char *path = NULL;

	memset(pattern, 'p', sizeof(pattern));
	pattern[KP_NAME_MAX + 1] = '\0';
	assert_int_equal(
		kp_search_resolve(pattern, (struct kp_span){0}, "x", NULL, &path, &why),
		KPACK_ERROR_INVALID_ARGUMENT);
	assert_has(why.text, "search path");
	pattern[KP_NAME_MAX] = '\0';
	free(resolve(pattern, "", "x"));
	assert_int_equal(
		kp_search_resolve(pattern, (struct kp_span){0}, "d/x", NULL, &path, &why),
		KPACK_ERROR_INVALID_ARGUMENT);
	memset(binary, 'b', sizeof(binary));
	binary[KP_NAME_MAX] = '/';
	binary[KP_NAME_MAX + 1] = '\0';
	assert_int_equal(
		kp_search_resolve("p", (struct kp_span){0}, binary, NULL, &path, &why),
		KPACK_ERROR_INVALID_ARGUMENT);
	assert_int_equal(kp_search_resolve("/@GFXARCH@", kp_span_str(pattern), "x", NULL,
					   &path, &why),
			 KPACK_ERROR_INVALID_ARGUMENT);
	assert_null(path);
	memcpy(pattern, "/@GFXARCH@", 10);
	pattern[2000] = '\0';
	binary[2000] = '\0';
	path = resolve(pattern, binary, "x");
	assert_int_equal(strlen(path), 2000 + 2000 - strlen(KP_SEARCH_ARCH));
	free(path);
}

SUITE(enter_tree, leave_tree);
