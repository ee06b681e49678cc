/* SPDX-License-Identifier: MIT */
/*
 * A suite: the tests of one file, which its component's program of unit tests finds by itself.
 *
 *     static const struct CMUnitTest tests[] = {
 *             cmocka_unit_test(names_and_directories),
 *     };
 *
 *     SUITE(tests, NULL, NULL);
 *
 * Each suite runs in a process of its own.  In it the first function is called before the tests
 * and the second after them, as those of a group of cmocka's.
 */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

struct unit_suite {
	const char *file;
	const struct CMUnitTest *tests;
	size_t n;
	CMFixtureFunction begin, end;
};

/* The linker makes one array of the pointers of all files. */
#define SUITE(table, begin_suite, end_suite)                                             \
	static const struct unit_suite this_suite = {__FILE__, table,                    \
						     sizeof(table) / sizeof((table)[0]), \
						     begin_suite, end_suite};            \
	static const struct unit_suite *const this_suite_entry                           \
		__attribute__((used, section("unit_suites"))) = &this_suite

#endif
