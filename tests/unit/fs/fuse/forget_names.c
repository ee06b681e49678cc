/* SPDX-License-Identifier: MIT */
/* A name that was looked up is notified, and again after later look-ups; none follows the end. */
#include "fs/fuse/forget_names.h"
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "tests/unit/unit.h"

static const char one[] = "one", two[] = "two";
static atomic_uint notified_one, notified_two;
static sem_t notified;

/* The notified name's NOTED look-ups are gone from these; or NULL. */
enum { NOTED = 50 };
static struct forget_names *noted;

static void notify(void *user, const char *name)
{
	assert_ptr_equal(user, &notified);
	for (int i = 0; noted && i < NOTED; i++)
		forget_names_gone(noted, name);
	++*(name == one ? &notified_one : &notified_two);
	sem_post(&notified);
}

TEST(test_notify)
{
	struct forget_names *t = forget_names_new(notify, &notified);

	/* look-ups within a moment cause one notification, and are gone by it */
	noted = t;
	for (int i = 0; i < 2 * NOTED; i++)
		forget_names_note(t, i % 2 ? one : two);
	sem_wait(&notified);
	sem_wait(&notified);
	noted = NULL;
	assert_int_equal(notified_one, 1);
	assert_int_equal(notified_two, 1);
	/* later ones cause another */
	forget_names_note(t, two);
	sem_wait(&notified);
	forget_names_free(t);
	assert_int_equal(notified_one, 1);
	assert_int_equal(notified_two, 2);
}

/* Freeing does not wait for the moment to end. */
TEST(test_end)
{
	struct forget_names *t = forget_names_new(notify, &notified);
	unsigned before = notified_one;

	forget_names_free(forget_names_new(notify, &notified));
	forget_names_note(t, one);
	forget_names_free(t);
	assert_int_equal(notified_one, before);
	forget_names_free(NULL);
}

static int begin_suite(void **state)
{
	sem_init(&notified, 0, 0);
	return 0;
}

SUITE(begin_suite, NULL);
