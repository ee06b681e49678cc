/* SPDX-License-Identifier: MIT */
/*
 * Look-ups of one name within a moment cause one notification; later ones cause another;
 * none follows the end.
 */
#include "fs/control/forget_names.h"
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static const char one[] = "one", two[] = "two";
static unsigned notified_one, notified_two;
static sem_t notified;

static void notify(void *user, const char *name)
{
	assert_ptr_equal(user, &notified);
	__atomic_add_fetch(name == one ? &notified_one : &notified_two, 1,
			   __ATOMIC_RELAXED);
	sem_post(&notified);
}

static unsigned count(unsigned *n)
{
	return __atomic_load_n(n, __ATOMIC_RELAXED);
}

static void test_notify(void **state)
{
	struct forget_names *t = forget_names_new(notify, &notified);

	(void)state;
	for (int i = 0; i < 100; i++)
		forget_names_note(t, i % 2 ? one : two);
	sem_wait(&notified);
	sem_wait(&notified);
	assert_int_equal(count(&notified_one), 1);
	assert_int_equal(count(&notified_two), 1);
	forget_names_note(t, two);
	sem_wait(&notified);
	assert_int_equal(count(&notified_two), 2);
	forget_names_free(t);
	assert_int_equal(count(&notified_one), 1);
}

/* Freeing does not wait for the moment to end. */
static void test_end(void **state)
{
	struct forget_names *t = forget_names_new(notify, &notified);
	unsigned before = count(&notified_one);

	(void)state;
	forget_names_free(forget_names_new(notify, &notified));
	forget_names_note(t, one);
	forget_names_free(t);
	assert_int_equal(count(&notified_one), before);
	forget_names_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_notify),
		cmocka_unit_test(test_end),
	};

	sem_init(&notified, 0, 0);
	return cmocka_run_group_tests_name("tidier", tests, NULL, NULL);
}
