/* SPDX-License-Identifier: MIT */
/* The questions to dpkg and rpm, and what is taken of their answers. */
#include "packer/thin/packages.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/unit/unit.h"

#define N_PATHS 450

/* A program that prints what dpkg-query would, and one line for each path that it gets. */
static const char script[] =
	"#!/bin/sh\n"
	"[ \"$1\" = -S ] || exit 2\n"
	"shift\n"
	"echo 'diversion by dash from: /bin/sh'\n"
	"echo 'librocblas4:amd64, librocblas4:arm64, rocm-meta: /usr/lib/a: b'\n"
	"for p; do case $p in */odd*) echo \"odd-$#: $p\"; echo \"lit: $p\" >&2;; "
	"'/x/\\[\\*\\?\\\\') echo 'escaped: /x/[*?\\';; esac; done\n";

/* A program that prints what rpm would, and counts its runs; its database is a directory. */
static const char rpm_script[] =
	"#!/bin/sh\n"
	"[ \"$*\" = '--eval %{_dbpath}' ] && echo \"$0.db\" && exit\n"
	"[ \"$*\" = '-qa --qf [%{=NAME}: %{FILENAMES}\\n]' ] || exit 2\n"
	"echo >>\"$0.runs\"\n"
	"echo '(contains no files)'\n"
	"echo 'blas: /opt/blas/b'\n"
	"echo 'blas: /opt/blas/deep/c: d'\n"
	"echo 'blas-devel: /opt/blas/b'\n"
	"echo 'other: /opt/blaster'\n";

static char program[40], rpm[48], runs[56], db[56], db_file[64];
static const struct packages_programs only_dpkg = {program, "/nonexistent/rpm"};
static const struct packages_programs only_rpm = {"/nonexistent/dpkg-query", rpm};
static const struct packages_programs both = {program, rpm}, none = {"/none", "/none"};

static int make_script(const char *path, const char *text)
{
	FILE *f = fopen(path, "wxe");

	if (!f || fputs(text, f) < 0 || fclose(f))
		return -1;
	return chmod(path, 0700);
}

static int make_programs(void **state)
{
	snprintf(program, sizeof(program), "/tmp/kpack-owners-%d", (int)getpid());
	snprintf(rpm, sizeof(rpm), "%s.rpm", program);
	snprintf(runs, sizeof(runs), "%s.runs", rpm);
	snprintf(db, sizeof(db), "%s.db", rpm);
	snprintf(db_file, sizeof(db_file), "%s/a", db);
	return make_script(program, script) || make_script(rpm, rpm_script) ||
	       mkdir(db, 0700) || make_script(db_file, "");
}

static int remove_programs(void **state)
{
	return unlink(program) | unlink(rpm) | unlink(runs) | unlink(db_file) | rmdir(db);
}

/* Ask, and compare the names of the packages of all paths. */
static void ask(const struct packages_programs *programs, const char *const *paths,
		size_t n, enum packages_answer answer, const char *names)
{
	struct packages p;
	char *text;

	assert_int_equal(packages_ask(programs, paths, n, &p), answer);
	text = packages_names(&p, paths, n);
	assert_string_equal(text, names);
	free(text);
	packages_fini(&p);
}

TEST(packages_are_named_once)
{
	static const char *const paths[] = {"/x/[*?\\", "/usr/odd", "/usr/lib/a: b"};

	ask(&only_dpkg, paths, 3, PACKAGES_LISTED,
	    " escaped librocblas4 odd-3 rocm-meta");
	ask(&none, paths, 3, PACKAGES_UNKNOWN, "");
}

TEST(many_paths_are_asked_in_parts)
{
	const char *paths[N_PATHS];

	for (size_t i = 0; i < N_PATHS; i++)
		paths[i] = "/a/odd";
	ask(&only_dpkg, paths, N_PATHS, PACKAGES_LISTED, " odd-198 odd-54");
}

TEST(directories_are_asked_with_all_below_them)
{
	static const char *const dirs[] = {"/a/odd/", "/usr/lib/", "/a/even/"};
	struct packages p;

	assert_int_equal(packages_ask(&only_dpkg, dirs, 3, &p), PACKAGES_LISTED);
	assert_true(packages_have(&p, "/usr/lib/a: b"));
	assert_true(packages_have(&p, "/usr/lib/"));
	assert_true(packages_have(&p, "/a/odd/*"));
	assert_true(packages_have(&p, "/a/odd"));
	assert_false(packages_have(&p, "/a/even/"));
	packages_fini(&p);
}

TEST(rpm_lists_all_at_once)
{
	static const char *const paths[] = {"/opt/blas/b", "/opt/blas"};
	static const char *const dirs[] = {"/opt/blas/deep/", "/opt/none/"};
	struct packages p;
	struct stat st;

	ask(&only_rpm, paths, 2, PACKAGES_LISTED, " blas blas-devel");
	assert_int_equal(packages_ask(&both, dirs, 2, &p), PACKAGES_LISTED);
	assert_true(packages_have(&p, "/opt/blas/deep/c: d"));
	assert_false(packages_have(&p, "/opt/blas/b"));
	packages_fini(&p);
	assert_int_equal(stat(runs, &st), 0);
	assert_int_equal(st.st_size, 2);
	/* no paths, no question */
	ask(&only_rpm, paths, 0, PACKAGES_LISTED, "");
	assert_int_equal(stat(runs, &st), 0);
	assert_int_equal(st.st_size, 2);
	ask(&(const struct packages_programs){program, "/bin/false"}, paths, 2,
	    PACKAGES_FAILED, "");
}

/* rpm would make the database that it does not find. */
TEST(rpm_without_a_database_is_not_asked)
{
	static const char *const paths[] = {"/opt/blas/b", "/usr/lib/a: b"};

	assert_int_equal(unlink(db_file), 0);
	ask(&only_rpm, paths, 2, PACKAGES_UNKNOWN, "");
	ask(&both, paths, 2, PACKAGES_LISTED, " librocblas4 rocm-meta");
	assert_int_equal(rmdir(db), 0);
	ask(&only_rpm, paths, 2, PACKAGES_UNKNOWN, "");
	assert_int_equal(mkdir(db, 0700), 0);
	assert_int_equal(make_script(db_file, ""), 0);
}

SUITE(make_programs, remove_programs);
