/* SPDX-License-Identifier: MIT */
#include "packer/thin/owners.h"
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
	"for p; do case $p in */odd*) echo \"odd-$#: $p\"; echo \"lit: $p\" >&2;; esac; "
	"done\n"
	"case $1 in '/x/\\[\\*\\?\\\\') echo 'escaped: /x/[*?\\';; esac\n";

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
static const struct owners_programs only_dpkg = {program, "/nonexistent/rpm"};
static const struct owners_programs only_rpm = {"/nonexistent/dpkg-query", rpm};
static const struct owners_programs both = {program, rpm}, none = {"/none", "/none"};

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

TEST(packages_are_named_once)
{
	static const char *const paths[] = {"/x/[*?\\", "/usr/odd", "/usr/lib/a: b"};
	struct owners o;

	owners_find(&only_dpkg, paths, 3, &o);
	assert_int_equal(o.count, 4);
	assert_string_equal(o.names[0], "escaped");
	assert_string_equal(o.names[1], "librocblas4");
	assert_string_equal(o.names[2], "odd-3");
	assert_string_equal(o.names[3], "rocm-meta");
	owners_fini(&o);
}

TEST(many_paths_are_asked_in_parts)
{
	const char *paths[N_PATHS];
	struct owners o;

	for (size_t i = 0; i < N_PATHS; i++)
		paths[i] = "/a/odd";
	owners_find(&only_dpkg, paths, N_PATHS, &o);
	assert_int_equal(o.count, 2);
	assert_string_equal(o.names[0], "odd-200");
	assert_string_equal(o.names[1], "odd-50");
	owners_fini(&o);
}

TEST(without_the_program_there_is_none)
{
	static const char *const paths[] = {"/usr/odd"};
	struct owners o;

	owners_find(&none, paths, 1, &o);
	assert_int_equal(o.count, 0);
	owners_fini(&o);
}

TEST(paths_of_packages_are_listed)
{
	static const char *const dirs[] = {"/a/odd", "/usr/lib", "/a/even"};
	struct owners o;

	assert_int_equal(owners_list(&only_dpkg, dirs, 3, &o), OWNERS_LISTED);
	assert_int_equal(o.count, 4);
	assert_true(owners_has(&o, "/usr/lib/a: b"));
	assert_true(owners_has(&o, "/usr/lib"));
	assert_true(owners_has(&o, "/a/odd"));
	/* all directories are asked about at once */
	assert_true(owners_has(&o, "/a/odd/*"));
	assert_false(owners_has(&o, "/a"));
	assert_false(owners_has(&o, "odd-2"));
	owners_fini(&o);
	assert_int_equal(owners_list(&none, dirs, 3, &o), OWNERS_UNKNOWN);
	assert_int_equal(o.count, 0);
}

TEST(rpm_is_asked_once)
{
	static const char *const paths[] = {"/opt/blas/b", "/opt/blas"};
	static const char *const dirs[] = {"/opt/blas", "/opt/blas/deep", "/opt/none"};
	struct stat st;
	struct owners o;
	char *text;

	owners_find(&only_rpm, paths, 2, &o);
	text = owners_text(&o);
	assert_string_equal(text, " blas blas-devel");
	free(text);
	owners_fini(&o);
	assert_int_equal(owners_list(&only_rpm, dirs, 3, &o), OWNERS_LISTED);
	text = owners_text(&o);
	assert_string_equal(text,
			    " /opt/blas /opt/blas/b /opt/blas/deep /opt/blas/deep/c: d");
	free(text);
	owners_fini(&o);
	assert_int_equal(stat(runs, &st), 0);
	assert_int_equal(st.st_size, 2);
	/* no paths, no question */
	owners_find(&only_rpm, paths, 0, &o);
	owners_fini(&o);
	assert_int_equal(stat(runs, &st), 0);
	assert_int_equal(st.st_size, 2);
}

TEST(both_are_asked)
{
	static const char *const dirs[] = {"/opt/blas/deep", "/usr/lib"};
	struct owners o;

	assert_int_equal(owners_list(&both, dirs, 2, &o), OWNERS_LISTED);
	assert_true(owners_has(&o, "/opt/blas/deep/c: d"));
	assert_true(owners_has(&o, "/usr/lib/a: b"));
	owners_fini(&o);
	/* one that fails makes the answer useless */
	assert_int_equal(
		owners_list(&(const struct owners_programs){program, "/bin/false"}, dirs,
			    2, &o),
		OWNERS_FAILED);
	assert_int_equal(o.count, 0);
}

/* rpm would make the database that it does not find. */
TEST(rpm_without_a_database_is_not_asked)
{
	static const char *const dirs[] = {"/opt/blas/deep", "/usr/lib"};
	char elsewhere[72];
	struct owners o;

	snprintf(elsewhere, sizeof(elsewhere), "%s.away", db);
	assert_int_equal(rename(db_file, elsewhere), 0);
	assert_int_equal(owners_list(&only_rpm, dirs, 2, &o), OWNERS_UNKNOWN);
	assert_int_equal(o.count, 0);
	assert_int_equal(owners_list(&both, dirs, 2, &o), OWNERS_LISTED);
	assert_true(owners_has(&o, "/usr/lib/a: b"));
	assert_false(owners_has(&o, "/opt/blas/deep/c: d"));
	owners_fini(&o);
	assert_int_equal(rmdir(db), 0);
	assert_int_equal(owners_list(&only_rpm, dirs, 2, &o), OWNERS_UNKNOWN);
	assert_int_equal(mkdir(db, 0700), 0);
	assert_int_equal(rename(elsewhere, db_file), 0);
}

SUITE(make_programs, remove_programs);
