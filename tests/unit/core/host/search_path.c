/* SPDX-License-Identifier: MIT */
#include "core/base/bounds.h"
#include "core/host/search_path.h"
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
		{TRIPLE "gfx11-generic", "gfx11-generic "},
		{"gfx90a:sramecc+:xnack-",
		 "gfx90a:sramecc+:xnack- gfx90a:sramecc+ gfx90a:xnack- gfx90a "},
		{"gfx950:xnack+:sramecc+",
		 "gfx950:xnack+:sramecc+ gfx950:xnack+ gfx950:sramecc+ gfx950 "},
		{"a:x:y:z", "a:x:y:z a:x:y a:x:z a:x a:y:z a:y a:z a "},
		{"a::x:", "a:x a "},
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

/* From the directory of BINARY; WANT is below the tree, or "=" and the exact path. */
static const struct {
	const char *pattern, *binary, *want;
} paths[] = {
	{"../.kpack/a.kpack", "real/x.so", ".kpack/a.kpack"},
	{".kpack/a.kpack", "x.so", ".kpack/a.kpack"},
	{"../.kpack/a.kpack", "./real//x.so", ".kpack/a.kpack"},
	{"./.kpack/./a.kpack", "real/../x.so", ".kpack/a.kpack"},
	/* the binary's file name does not matter */
	{"../.kpack/a.kpack", "real/", ".kpack/a.kpack"},
	{".kpack/a.kpack", "", ".kpack/a.kpack"},
	{"", "real/x.so", "real"},
	/* a linked directory leads beside its target, also for a file that does not exist */
	{"../.kpack/a.kpack", "link/x.so", "real/deep/.kpack/a.kpack"},
	{"../.kpack/b.kpack", "link/x.so", "real/deep/.kpack/b.kpack"},
	{"../none/b.kpack", "link/x.so", "real/deep/none/b.kpack"},
	{"../../../.kpack/b.kpack", "link/x.so", ".kpack/b.kpack"},
	{"../link/../.kpack/b.kpack", "real/x.so", "real/deep/.kpack/b.kpack"},
	/* what is missing is resolved by its spelling */
	{"none/../.kpack/b.kpack", "real/x.so", "real/.kpack/b.kpack"},
	{"none/./c//d/../../e", "real/x.so", "real/none/e"},
	{"none/..", "real/x.so", "real"},
	{"none/../..", "real/x.so", ""},
	/* after a missing component, later links are not followed */
	{"none/../link/a", "x.so", "=link/a"},
	{"../none/../link/../a", "real/x.so", "a"},
	/* a file is not a directory, a loop cannot be resolved */
	{"../file/../a", "real/x.so", "a"},
	{"../loop/../a", "real/x.so", "a"},
	{"../loop", "real/x.so", "loop"},
	/* a linked archive keeps its name, a path that ends in none is resolved completely */
	{"../.kpack/linked.kpack", "link/x.so", "real/deep/.kpack/linked.kpack"},
	{"../.kpack/broken.kpack", "link/x.so", "real/deep/.kpack/broken.kpack"},
	{"../../link/.", "real/deep/x.so", "real/deep/lib"},
	{"../../link/", "real/deep/x.so", "real/deep/lib"},
	/* without anything there paths stay relative */
	{"../../a.kpack", "none/x.so", "=../a.kpack"},
	{"../../../../a", "none/x.so", "=../../../a"},
	{"..", "none/x.so", "=."},
	{"b.kpack", "x.so", "=b.kpack"},
	{"../../a.kpack", "/none/x.so", "=/a.kpack"},
	{"../../../a", "/x.so", "=/a"},
	/* absolute ones stay as they are */
	{"/a/../b//c.kpack", "real/x.so", "=/a/../b//c.kpack"},
	{"/", "x.so", "=/"},
	/* the first placeholder of the pattern stands for the target */
	{"/k/b_@GFXARCH@.kpack", "x.so", "=/k/b_gfx942.kpack"},
	{"/@GFXARCH@/@GFXARCH@", "x.so", "=/gfx942/@GFXARCH@"},
	{"/@GFXARCH", "x.so", "=/@GFXARCH"},
	{"/@gfxarch@", "x.so", "=/@gfxarch@"},
	{"@GFXARCH@/x", "none/x.so", "=none/gfx942/x"},
	{"@GFXARCH@", "none@GFXARCH@/x.so", "=none@GFXARCH@/gfx942"},
};

static void check(const char *pattern, const char *binary, const char *want,
		  struct kp_search_memo *memo)
{
	struct kpackx_error why = {0};
	char full[KP_NAME_MAX], *path = NULL;

	snprintf(full, sizeof(full), "%s%s%s", *want == '=' ? "" : root,
		 *want && *want != '=' ? "/" : "", want + (*want == '='));
	if (kp_search_resolve(pattern, kp_span_str("gfx942"), binary, memo, &path, &why))
		fail_msg("%s: %s", pattern, why.text);
	if (strcmp(path, full) != 0)
		fail_msg("%s from %s: %s, not %s", pattern, binary, path, full);
	free(path);
}

/* Each by itself, and with one memo for all: earlier results do not affect later ones. */
TEST(paths_are_resolved)
{
	struct kp_search_memo memo = {0};

	assert_int_equal(symlink("a.kpack", "real/deep/.kpack/linked.kpack") |
				 symlink("nowhere", "real/deep/.kpack/broken.kpack"),
			 0);
	for (size_t i = 0; i < COUNT(paths); i++) {
		check(paths[i].pattern, paths[i].binary, paths[i].want, NULL);
		check(paths[i].pattern, paths[i].binary, paths[i].want, &memo);
		check(paths[i].pattern, paths[i].binary, paths[i].want, &memo);
	}
	kp_search_memo_fini(&memo);
	kp_search_memo_fini(&memo);
	assert_true(kp_search_has_arch("a@GFXARCH@"));
	assert_false(kp_search_has_arch("a@GFXARCH"));
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
	snprintf(want, sizeof(want), "=/proc/%d/fd/%d/a.kpack", (int)getpid(), fd);
	check("a.kpack", binary, want, NULL);
	close(fd);
}

TEST(many_components_are_resolved)
{
	char pattern[KP_NAME_MAX + 1] = "";

	for (size_t i = 0; i + 2 < sizeof(pattern); i += 2)
		memcpy(pattern + i, "./", 2);
	pattern[KP_NAME_MAX] = '\0';
	check(pattern, "x.so", "", NULL);
	memcpy(pattern + KP_NAME_MAX - 6, "a/../b", 6);
	check(pattern, "x.so", "b", NULL);
	memcpy(pattern + 2000, "a/b/", 4);
	check(pattern, "x.so", "a/b/b", NULL);
}

TEST(long_paths_are_refused)
{
	static const struct {
		size_t dir, pattern, arch; /* bytes */
		int err;
	} rows[] = {
		{0, KP_NAME_MAX, 0, 0},
		{0, KP_NAME_MAX + 1, 0, KPACK_ERROR_INVALID_ARGUMENT},
		{1, KP_NAME_MAX, 0, KPACK_ERROR_INVALID_ARGUMENT},
		{KP_NAME_MAX, 1, 0, KPACK_ERROR_INVALID_ARGUMENT},
		{0, 2000, 2000, 0},
		{0, 2000, KP_NAME_MAX, KPACK_ERROR_INVALID_ARGUMENT},
	};
	static char pattern[KP_NAME_MAX + 2], binary[KP_NAME_MAX + 3],
		arch[KP_NAME_MAX + 1];

	for (size_t i = 0; i < COUNT(rows); i++) {
		char *path = NULL;

		memset(pattern, 'p', rows[i].pattern);
		pattern[rows[i].pattern] = '\0';
		if (rows[i].arch)
			memcpy(pattern, "/@GFXARCH@", 10);
		memset(binary, 'b', rows[i].dir);
		strcpy(binary + rows[i].dir, rows[i].dir ? "/x" : "x");
		memset(arch, 'a', rows[i].arch);
		arch[rows[i].arch] = '\0';
		assert_int_equal(kp_search_resolve(pattern, kp_span_str(arch), binary,
						   NULL, &path, NULL),
				 rows[i].err);
		assert_int_equal(path ? strlen(path) : 0,
				 rows[i].err    ? 0
				 : rows[i].arch ? 4000 - strlen(KP_SEARCH_ARCH)
						: rows[i].pattern);
		free(path);
	}
}

SUITE(enter_tree, leave_tree);
