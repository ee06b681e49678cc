/* SPDX-License-Identifier: MIT */
/* The questions to dpkg and rpm, and what is taken of their answers. */
#include "packer/thin/policy.h"
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
	"for p; do case $p in */odd) echo \"odd-$#: $p\"; echo \"lit: $p\" >&2;; "
	"'/x/\\[\\*\\?\\\\') echo 'escaped: /x/[*?\\';; esac; done\n";

/* A program that prints what rpm would; its database is a directory. */
static const char rpm_script[] =
	"#!/bin/sh\n"
	"[ \"$*\" = '--eval %{_dbpath}' ] && echo \"$0.db\" && exit\n"
	"[ \"$*\" = '-qa --qf [%{=NAME}: %{FILENAMES}\\n]' ] || exit 2\n"
	"echo '(contains no files)'\n"
	"echo 'blas: /opt/blas/b'\n"
	"echo 'blas-devel: /opt/blas/b'\n"
	"echo 'other: /opt/blaster'\n";

static char program[40], rpm[48], db[56], db_file[64];
static const struct packages_programs only_dpkg = {program, "/nonexistent/rpm"};
static const struct packages_programs only_rpm = {"/nonexistent/dpkg-query", rpm};

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
	snprintf(db, sizeof(db), "%s.db", rpm);
	snprintf(db_file, sizeof(db_file), "%s/a", db);
	return make_script(program, script) || make_script(rpm, rpm_script) ||
	       mkdir(db, 0700) || make_script(db_file, "");
}

static int remove_programs(void **state)
{
	return unlink(program) | unlink(rpm) | rmdir(db);
}

static void ask(const struct packages_programs *programs, const char *root,
		const char *const *paths, size_t n, const char *names)
{
	char *text = packages_of(programs, root, paths, n);

	assert_string_equal(text, names);
	free(text);
}

TEST(packages_are_named_once)
{
	const char *const paths[] = {"x/[*?\\", "usr/odd", "usr/lib/a: b"};
	const char *many[N_PATHS];

	ask(&only_dpkg, "/", paths, 3, " escaped librocblas4 odd-3 rocm-meta");
	/* a program gets at most so many paths at once */
	for (size_t i = 0; i < N_PATHS; i++)
		many[i] = "odd";
	ask(&only_dpkg, "/usr", many, N_PATHS, " odd-200 odd-50");
}

TEST(rpm_lists_all_if_it_has_a_database)
{
	const char *const paths[] = {"opt/blas/b", "opt/blas", "usr/lib/a: b"};

	ask(&only_rpm, "/", paths, 3, " blas blas-devel");
	ask(&(const struct packages_programs){program, rpm}, "/", paths, 3,
	    " blas blas-devel librocblas4 rocm-meta");
	ask(&(const struct packages_programs){program, "/bin/false"}, "/", paths, 3,
	    " librocblas4 rocm-meta");
	/* rpm would make the database that it does not find */
	assert_int_equal(unlink(db_file), 0);
	ask(&only_rpm, "/", paths, 3, "");
}

SUITE(make_programs, remove_programs);
