/* SPDX-License-Identifier: MIT */
/* Directories in ROCM_KPACK_PATH and ROCM_KPACK_PATH_PREFIX. */
#include "tests/unit/loading.h"
#include "core/base/bounds.h"
#include "tests/unit/unit.h"

static void make_subdir(const char *name)
{
	assert_int_equal(mkdir(in_dir(name), 0755), 0);
}

static void make_link(const char *to, const char *name)
{
	assert_int_equal(symlink(to, in_dir(name)), 0);
}

static void drop(const char *name)
{
	assert_int_equal(remove(in_dir(name)), 0);
}

/* Write an archive with one object for gfx900, whose contents are SAYS. */
static void put(const char *name, const char *says)
{
	write_archive(name, "'gfx900'", OBJECTS({"lib/x.so#0", "gfx900", says}));
}

/* Directory "many" with archives, and with files that a directory search must ignore. */
static int make_places(void **state)
{
	make_dir(state);
	make_subdir("many");
	make_subdir("many/0.kpack");
	make_subdir("many/below");
	put("many/below/0.kpack", "BELOW");
	put("many/.0.kpack", "HIDDEN");
	put("many/.kpack", "ONLY THE ENDING");
	put("many/0.kpack.bak", "OTHER ENDING");
	put("many/0kpack", "NO ENDING");
	write_file("many/1.kpack", "no archive", 10);
	make_link("no/such", "many/2.kpack");
	put("many/B.kpack", "UPPER CASE");
	put("many/a.kpack", "LOWER CASE");
	put("elsewhere", "ELSEWHERE");
	make_link("../elsewhere", "many/A.kpack");
	put("single.kpack", "SINGLE");
	make_subdir("gfx90a:xnack+");
	put("gfx90a:xnack+/x.kpack", "COLON");
	make_subdir("empty");
	return 0;
}

static const struct request missing = {"lib/x.so", 0, "gfx900", "no.kpack", NO_ARCHIVE};

/* Check a request whose marker names single.kpack. */
static void check_list(const char *variable, const char *value, const char *says)
{
	check_with(variable, value,
		   &(struct request){"lib/x.so", 0, "gfx900", "single.kpack", says,
				     says ? 0 : KPACK_ERROR_ARCHIVE_NOT_FOUND});
}

TEST(a_directory_means_its_archives_in_order)
{
	check_list("ROCM_KPACK_PATH", "@/many", "ELSEWHERE");
	check_list("ROCM_KPACK_PATH", "@/many/", "ELSEWHERE");
	check_list("ROCM_KPACK_PATH_PREFIX", "@/many", "ELSEWHERE");
	drop("many/A.kpack");
	check_list("ROCM_KPACK_PATH", "@/many", "UPPER CASE");
	drop("many/B.kpack");
	check_list("ROCM_KPACK_PATH", "@/many", "LOWER CASE");
	drop("many/a.kpack");
	/*
	 * the other files are not archives, hidden, in a subdirectory, or named otherwise
	 */
	check_list("ROCM_KPACK_PATH", "@/many", NULL);
	check_list("ROCM_KPACK_PATH_PREFIX", "@/many", "SINGLE");
	make_link("../elsewhere", "many/A.kpack");
	put("many/B.kpack", "UPPER CASE");
	put("many/a.kpack", "LOWER CASE");
}

TEST(directories_and_files_mix_in_the_order_of_the_list)
{
	check_list("ROCM_KPACK_PATH", "@/single.kpack:@/many", "SINGLE");
	check_list("ROCM_KPACK_PATH", "@/many:@/single.kpack", "ELSEWHERE");
	check_list("ROCM_KPACK_PATH", "@/many/a.kpack:@/many", "LOWER CASE");
	check_list("ROCM_KPACK_PATH", "@/empty:/no/such:@/many", "ELSEWHERE");
	check_list("ROCM_KPACK_PATH_PREFIX", "@/empty:/no/such", "SINGLE");
}

TEST(colons_of_a_directory_are_escaped_or_found)
{
	check_list("ROCM_KPACK_PATH", "@/gfx90a\\:xnack+", "COLON");
	check_list("ROCM_KPACK_PATH", "@/gfx90a\\:xnack+/:@/many", "COLON");
	check_list("ROCM_KPACK_PATH", "/no\\:such:@/gfx90a\\:xnack+:@/many", "COLON");
	check_list("ROCM_KPACK_PATH", "@/gfx90a:xnack+", "COLON");
	check_list("ROCM_KPACK_PATH", "/no:such:@/gfx90a:xnack+/:@/many", "COLON");
	/* a part that is there is a path */
	put("gfx90a", "SINGLE");
	check_list("ROCM_KPACK_PATH", "@/gfx90a:xnack+", "SINGLE");
	drop("gfx90a");
	/* at most eight members are one path */
	put("a:b:c:d:e:f:g:h", "COLON");
	put("a:b:c:d:e:f:g:h:i", "COLON");
	check_list("ROCM_KPACK_PATH", "@/a:b:c:d:e:f:g:h", "COLON");
	drop("a:b:c:d:e:f:g:h");
	check_list("ROCM_KPACK_PATH", "@/a:b:c:d:e:f:g:h:i", NULL);
	drop("a:b:c:d:e:f:g:h:i");
}

/* Markers name files: a directory is skipped. */
TEST(markers_name_no_directories)
{
	check_alone(&(struct request){"lib/x.so", 0, "gfx900", "many", NO_ARCHIVE});
	check_alone(&(struct request){"lib/x.so", 0, "gfx900", "many single.kpack",
				      "SINGLE", 0});
}

/* The cache's list names a directory, which is created and removed. */
TEST(directories_are_listed_at_each_load)
{
	struct request found = {"lib/x.so", 0, "gfx900", "no.kpack", NULL, 0};
	kpack_cache_t cache;

	setenv("ROCM_KPACK_PATH", in_dir("later"), 1);
	cache = new_cache();
	unsetenv("ROCM_KPACK_PATH");
	check(cache, &missing);
	make_subdir("later");
	check(cache, &missing);
	put("later/b.kpack", found.data = "CAME");
	check(cache, &found);
	put("later/a.kpack", found.data = "CAME BEFORE IT");
	check(cache, &found);
	drop("later/a.kpack");
	found.data = "CAME";
	check(cache, &found);
	drop("later/b.kpack");
	check(cache, &missing);
	drop("later");
	check(cache, &missing);
	/* now a file */
	put("later", found.data = "FILE");
	check(cache, &found);
	drop("later");
	kpack_cache_destroy(cache);
}

TEST(the_reason_names_directories)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/empty", dir);
	setenv("ROCM_KPACK_PATH", path, 1);
	check_text(&missing, "no archive to look for lib/x.so#0 in; "
			     "@/empty: a directory without *.kpack");
	snprintf(path, sizeof(path), "%s/many:/no/such", dir);
	setenv("ROCM_KPACK_PATH", path, 1);
	check_text(&(struct request){"lib/x.so", 0, "gfx1", "a", NO_ARCH},
		   "no archive offers gfx1; @/many/A.kpack offers gfx900; "
		   "@/many/B.kpack offers gfx900; @/many/a.kpack offers gfx900; "
		   "@/many/0.kpack: is a directory, not a regular file; "
		   "@/many/1.kpack: header: not a kpack archive (magic 6e6f2061); "
		   "no file @/many/2.kpack; no file /no/such");
	unsetenv("ROCM_KPACK_PATH");
}

/* Root can read every directory, so it switches to another user for this test. */
TEST(a_directory_that_is_closed_is_passed_over)
{
	uid_t user = geteuid();

	make_subdir("closed");
	put("closed/x.kpack", "CLOSED");
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(chmod(in_dir("closed"), 0311), 0);
	if (user == 0)
		assert_int_equal(seteuid(65534), 0);
	check_list("ROCM_KPACK_PATH", "@/closed:@/single.kpack", "SINGLE");
	setenv("ROCM_KPACK_PATH", in_dir("closed"), 1);
	check_text(&missing, "no archive to look for lib/x.so#0 in; "
			     "@/closed: cannot open: Permission denied");
	unsetenv("ROCM_KPACK_PATH");
	assert_int_equal(seteuid(user), 0);
	assert_int_equal(chmod(in_dir("closed"), 0755), 0);
}

SUITE(make_places, remove_dir);
