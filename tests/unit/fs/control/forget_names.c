/* SPDX-License-Identifier: MIT */
/*
 * A name that was looked up is notified until all its look-ups are gone; later look-ups
 * cause another notification; none follows the end.
 */
#include "fs/control/forget_names.h"
#include <semaphore.h>
#include <stdlib.h>
#include "tests/unit/unit.h"

static const char one[] = "one", two[] = "two";
static unsigned notified_one, notified_two;
static sem_t notified;

/* The notified name's NOTED look-ups are gone from these; or NULL. */
enum { NOTED = 50 };
static struct forget_names *noted;

static void notify(void *user, const char *name)
{
	assert_ptr_equal(user, &notified);
	for (int i = 0; noted && i < NOTED; i++)
		forget_names_gone(noted, name);
	__atomic_add_fetch(name == one ? &notified_one : &notified_two, 1,
			   __ATOMIC_RELAXED);
	sem_post(&notified);
}

static unsigned count(unsigned *n)
{
	return __atomic_load_n(n, __ATOMIC_RELAXED);
}

/* Await a notification of the name that N counts. */
static void await_one_of(unsigned *n)
{
	for (unsigned before = count(n); count(n) == before;)
		sem_wait(&notified);
}

TEST(test_notify)
{
	struct forget_names *t = forget_names_new(notify, &notified);
	unsigned last;

	/* look-ups within a moment cause one notification, and are gone by it */
	noted = t;
	for (int i = 0; i < 2 * NOTED; i++)
		forget_names_note(t, i % 2 ? one : two);
	sem_wait(&notified);
	sem_wait(&notified);
	noted = NULL;
	assert_int_equal(count(&notified_one), 1);
	assert_int_equal(count(&notified_two), 1);
	forget_names_note(t, one);
	forget_names_note(t, one);
	await_one_of(&notified_one);
	forget_names_gone(t, one);
	/* one look-up is left */
	await_one_of(&notified_one);
	forget_names_gone(t, one);
	last = count(&notified_one);
	/* a notification may have been on its way; none begins from here on */
	forget_names_note(t, two);
	await_one_of(&notified_two);
	assert_in_range(count(&notified_one), last, last + 1);
	last = count(&notified_one);
	await_one_of(&notified_two);
	assert_int_equal(count(&notified_one), last);
	forget_names_free(t);
}

/* Freeing does not wait for the moment to end. */
TEST(test_end)
{
	struct forget_names *t = forget_names_new(notify, &notified);
	unsigned before = count(&notified_one);

	forget_names_free(forget_names_new(notify, &notified));
	forget_names_note(t, one);
	forget_names_free(t);
	assert_int_equal(count(&notified_one), before);
	forget_names_free(NULL);
}

static int begin_suite(void **state)
{
	sem_init(&notified, 0, 0);
	return 0;
}

SUITE(begin_suite, NULL);
