/* SPDX-License-Identifier: MIT */
#include "packer/thin/owners.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

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
	"case $1 in '/x/\\[\\*\\?\\\\') echo 'escaped: /x';; esac\n";

static char program[64];

static int make_program(void **state)
{
	FILE *f;

	(void)state;
	snprintf(program, sizeof(program), "/tmp/kpack-owners-%d", (int)getpid());
	f = fopen(program, "wxe");
	if (!f || fputs(script, f) < 0 || fclose(f))
		return -1;
	return chmod(program, 0700);
}

static int remove_program(void **state)
{
	(void)state;
	return unlink(program);
}

static void packages_are_named_once(void **state)
{
	static const char *const paths[] = {"/x/[*?\\", "/usr/odd"};
	struct owners o;

	(void)state;
	owners_find(program, paths, 2, &o);
	assert_int_equal(o.count, 4);
	assert_string_equal(o.names[0], "escaped");
	assert_string_equal(o.names[1], "librocblas4");
	assert_string_equal(o.names[2], "odd-2");
	assert_string_equal(o.names[3], "rocm-meta");
	owners_fini(&o);
}

static void many_paths_are_asked_in_parts(void **state)
{
	const char *paths[N_PATHS];
	struct owners o;

	(void)state;
	for (size_t i = 0; i < N_PATHS; i++)
		paths[i] = "/a/odd";
	owners_find(program, paths, N_PATHS, &o);
	assert_int_equal(o.count, 4);
	assert_string_equal(o.names[1], "odd-200");
	assert_string_equal(o.names[2], "odd-50");
	owners_fini(&o);
}

static void without_the_program_there_is_none(void **state)
{
	static const char *const paths[] = {"/usr/odd"};
	struct owners o;

	(void)state;
	owners_find("/nonexistent/dpkg-query", paths, 1, &o);
	assert_int_equal(o.count, 0);
	owners_fini(&o);
}

static void paths_of_packages_are_listed(void **state)
{
	static const char *const dirs[] = {"/a/odd", "/a/even"};
	struct owners o;

	(void)state;
	assert_true(owners_list(program, dirs, 2, &o));
	assert_int_equal(o.count, 3);
	assert_true(owners_has(&o, "/usr/lib/a: b"));
	assert_true(owners_has(&o, "/a/odd"));
	assert_true(owners_has(&o, "/a/odd/*"));
	assert_false(owners_has(&o, "/a"));
	assert_false(owners_has(&o, "odd-2"));
	owners_fini(&o);
	assert_false(owners_list("/nonexistent/dpkg-query", dirs, 2, &o));
	assert_int_equal(o.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packages_are_named_once),
		cmocka_unit_test(many_paths_are_asked_in_parts),
		cmocka_unit_test(without_the_program_there_is_none),
		cmocka_unit_test(paths_of_packages_are_listed),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_program, remove_program);
}
