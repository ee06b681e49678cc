/* SPDX-License-Identifier: MIT */
/*
 * Tests of a component, which its program of unit tests finds by itself:
 *
 *     TEST(names_and_directories)
 *     {
 *             assert_string_equal(kp_path_name("a/b/c.co"), "c.co");
 *     }
 *
 * TEST(name, set_up) and TEST(name, set_up, tear_down) call these before and after the test.
 * The tests of a file are a suite: they run in a process of their own, in the file's order.
 * SUITE(set_up, tear_down) names functions that are called before and after all of them.
 */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* TEXT contains PART. */
#define assert_has(text, part) unit_has(text, part, __FILE__, __LINE__)
static inline void unit_has(const char *text, const char *part, const char *file,
			    int line)
{
	if (strstr(text, part))
		return;
	print_error("\"%s\" is not in \"%s\"\n", part, text);
	_fail(file, line);
}

/* Sanitizers have allocators of their own, which end a process that has no memory left. */
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define UNIT_ASAN 1
#else
#define UNIT_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define UNIT_TSAN 1
#else
#define UNIT_TSAN 0
#endif

/* Few tests use the STATE that cmocka gives them. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

struct unit_test {
	const char *file;
	int line;
	struct CMUnitTest test;
};

struct unit_suite {
	const char *file;
	CMFixtureFunction set_up, tear_down;
};

/* The linker makes one array of the pointers in a section of all files. */
#define UNIT_ENTRY __attribute__((used, section("unit_tests")))
#define UNIT_SUITE __attribute__((used, section("unit_suites")))

#define TEST(...) UNIT_TEST(__VA_ARGS__, NULL, NULL, NULL)
#define UNIT_TEST(name, before, after, ...)                                              \
	static void name(void **state);                                                  \
	static const struct unit_test name##_test = {                                    \
		__FILE__, __LINE__, {#name, name, before, after, NULL}};                 \
	static const struct unit_test *const name##_entry UNIT_ENTRY = &name##_test;     \
	static void name(void **state)

#define SUITE(before, after)                                                             \
	static const struct unit_suite this_suite = {__FILE__, before, after};           \
	static const struct unit_suite *const this_entry UNIT_SUITE = &this_suite

#endif
