/* SPDX-License-Identifier: MIT */
/* Names are told once for all look-ups of a moment, again after more, and never after the end. */
#include "fs/control/forget_names.h"
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static const char one[] = "one", two[] = "two";
static unsigned told_one, told_two;
static sem_t told;

static void tell(void *user, const char *name)
{
	assert_ptr_equal(user, &told);
	__atomic_add_fetch(name == one ? &told_one : &told_two, 1, __ATOMIC_RELAXED);
	sem_post(&told);
}

static unsigned count(unsigned *n)
{
	return __atomic_load_n(n, __ATOMIC_RELAXED);
}

static void test_tell(void **state)
{
	struct forget_names *t = forget_names_new(tell, &told);

	(void)state;
	for (int i = 0; i < 100; i++)
		forget_names_note(t, i % 2 ? one : two);
	sem_wait(&told);
	sem_wait(&told);
	assert_int_equal(count(&told_one), 1);
	assert_int_equal(count(&told_two), 1);
	forget_names_note(t, two);
	sem_wait(&told);
	assert_int_equal(count(&told_two), 2);
	forget_names_free(t);
	assert_int_equal(count(&told_one), 1);
}

/* The end does not wait for the moment. */
static void test_end(void **state)
{
	struct forget_names *t = forget_names_new(tell, &told);
	unsigned before = count(&told_one);

	(void)state;
	forget_names_free(forget_names_new(tell, &told));
	forget_names_note(t, one);
	forget_names_free(t);
	assert_int_equal(count(&told_one), before);
	forget_names_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tell),
		cmocka_unit_test(test_end),
	};

	sem_init(&told, 0, 0);
	return cmocka_run_group_tests_name("tidier", tests, NULL, NULL);
}
