/* SPDX-License-Identifier: MIT */
#include "fs/server/read_error_log.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "fs/base/log.h"

/* Fakes: an archive with any number of entries, and a log that counts lines. */

static unsigned lines;
static char last[1024];

void log_print(int priority, const char *fmt, ...)
{
	va_list args;

	assert_int_equal(priority, LOG_ERR);
	va_start(args, fmt);
	vsnprintf(last, sizeof(last), fmt, args);
	va_end(args);
	lines++;
}

const char *kp_archive_path(const struct kpack_archive *a)
{
	(void)a;
	return "/opt/a\n.kpack";
}

void kp_archive_entry(const struct kpack_archive *a, size_t entry,
		      struct kp_entry_info *out)
{
	(void)a;
	(void)entry;
	*out = (struct kp_entry_info){.key = kp_span_str("lib/x.so#0"),
				      .arch = kp_span_str("gfx90a:xnack+")};
}

static struct origin first = {.serial = 1}, second = {.serial = 2};
static struct read_error_log cs;

static void add(struct origin *o, size_t entry)
{
	struct kpackx_error why = {0};

	kp_fail(&why, KPACK_ERROR_IO_ERROR, "a\\012b: read error");
	read_error_log_add(&cs, (struct origin_entry){o, entry}, &why);
}

static int setup(void **state)
{
	(void)state;
	lines = 0;
	last[0] = '\0';
	return 0;
}

static void one_line_for_each_entry(void **state)
{
	(void)state;
	read_error_log_init(&cs, 20, 1000);
	add(&first, 0);
	assert_string_equal(
		last, "/opt/a\\012.kpack: lib/x.so#0 gfx90a:xnack+: a\\012b: read error");
	for (int i = 0; i < 100; i++)
		add(&first, 0);
	assert_int_equal(lines, 1);
	add(&first, 1);
	add(&second, 0);
	assert_int_equal(lines, 3);
	read_error_log_fini(&cs);
	assert_int_equal(lines, 3);
}

static void not_too_many_lines(void **state)
{
	(void)state;
	read_error_log_init(&cs, 20, 1000);
	for (size_t i = 0; i < 100; i++)
		add(&first, i);
	assert_int_equal(lines, 20);
	read_error_log_fini(&cs);
	assert_int_equal(lines, 21);
	assert_string_equal(last, "and 80 more read errors");
}

/* With an interval of 0, every error is the first of its interval. */
static void after_the_time_it_goes_on(void **state)
{
	(void)state;
	read_error_log_init(&cs, 1, 1000);
	add(&first, 0);
	add(&first, 1);
	assert_int_equal(lines, 1);
	pthread_mutex_lock(&cs.lock);
	cs.seconds = 0;
	pthread_mutex_unlock(&cs.lock);
	add(&first, 1);
	assert_int_equal(lines, 3); /* the count of suppressed errors, and a new error */
	add(&first, 1);
	assert_int_equal(lines, 3);
	read_error_log_fini(&cs);
	assert_int_equal(lines, 3);
}

static unsigned lines_now(void)
{
	unsigned n;

	pthread_mutex_lock(&cs.lock);
	n = (unsigned)lines;
	pthread_mutex_unlock(&cs.lock);
	return n;
}

static time_t second_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* Add five errors in one period of a second, however long this process has to wait. */
static void add_within_a_second(void)
{
	time_t began;

	for (;;) {
		lines = 0;
		began = second_now();
		read_error_log_init(&cs, 1, 1);
		for (size_t i = 0; i < 5; i++)
			add(&first, i);
		if (second_now() == began)
			return;
		read_error_log_fini(&cs);
	}
}

/* The number is logged even if no other read fails. */
static void the_number_comes_in_time(void **state)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	(void)state;
	add_within_a_second();
	for (int i = 0; i < 12 * 1000 && lines_now() < 2; i++)
		nanosleep(&pause, NULL);
	assert_int_equal(lines_now(), 2);
	read_error_log_fini(&cs);
	assert_int_equal(lines, 2);
}

static void any_number_of_entries(void **state)
{
	(void)state;
	read_error_log_init(&cs, UINT32_MAX, 1000);
	for (size_t i = 0; i < 3 * READ_ERRORS_KNOWN; i++)
		add(&first, i);
	assert_int_equal(lines, 3 * READ_ERRORS_KNOWN);
	add(&first, 3 * READ_ERRORS_KNOWN - 1);
	assert_int_equal(lines, 3 * READ_ERRORS_KNOWN);
	read_error_log_fini(&cs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_line_for_each_entry, setup),
		cmocka_unit_test_setup(not_too_many_lines, setup),
		cmocka_unit_test_setup(after_the_time_it_goes_on, setup),
		cmocka_unit_test_setup(the_number_comes_in_time, setup),
		cmocka_unit_test_setup(any_number_of_entries, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
