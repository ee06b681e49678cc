/* SPDX-License-Identifier: MIT */
#include "fs/server/read_error_log.h"
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "fs/base/log.h"

/*
 * Fakes: an archive with any number of entries, a log that counts lines, and a clock in which
 * time passes only by pass_time.
 */

static _Atomic time_t seconds;

int clock_gettime(clockid_t id, struct timespec *out)
{
	(void)id;
	*out = (struct timespec){.tv_sec = seconds};
	return 0;
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
			   const struct timespec *end)
{
	(void)end;
	return pthread_cond_wait(cond, lock);
}

static unsigned lines;
static char last[1024];
static sem_t printed;

void log_print(int priority, const char *fmt, ...)
{
	va_list args;

	assert_int_equal(priority, LOG_ERR);
	va_start(args, fmt);
	vsnprintf(last, sizeof(last), fmt, args);
	va_end(args);
	lines++;
	sem_post(&printed);
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
	sem_init(&printed, 0, 0);
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
	cs.seconds = 0; /* the thread is not woken */
	pthread_mutex_unlock(&cs.lock);
	add(&first, 1);
	assert_int_equal(lines, 3); /* the count of suppressed errors, and a new error */
	add(&first, 1);
	assert_int_equal(lines, 3);
	read_error_log_fini(&cs);
	assert_int_equal(lines, 3);
}

static void pass_time(time_t n)
{
	pthread_mutex_lock(&cs.lock);
	seconds += n;
	pthread_cond_signal(&cs.wanted);
	pthread_mutex_unlock(&cs.lock);
}

/* The number is logged even if no other read fails, and not before. */
static void the_number_comes_in_time(void **state)
{
	(void)state;
	read_error_log_init(&cs, 1, 10);
	for (size_t i = 0; i < 5; i++)
		add(&first, i);
	sem_wait(&printed); /* the first error */
	pass_time(9);
	assert_int_equal(sem_trywait(&printed), -1);
	pass_time(1);
	sem_wait(&printed);
	read_error_log_fini(&cs);
	assert_int_equal(lines, 2);
	assert_string_equal(last, "and 4 more read errors");
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
