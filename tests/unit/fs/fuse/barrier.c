/* SPDX-License-Identifier: MIT */
/* Which readers of `barrier` wait for which look. */
#include "fs/fuse/barrier.h"
#include <errno.h>
#include <string.h>
#include "tests/unit/unit.h"

static unsigned looks; /* that were asked for */
static bool gone;      /* nobody looks any more */

/* What each reader, whose token is its letter, was told: its text, or the error. */
static char told[256][32];

static bool ask(void *user)
{
	(void)user;
	looks += !gone;
	return !gone;
}

static void on_answer(void *token, const void *data, size_t size,
		      const struct kpackx_error *why)
{
	char *to = told[*(const unsigned char *)token];

	assert_string_equal(to, "");
	if (why)
		strcpy(to, why->sys_errno == EBUSY ? "busy" : "error");
	else
		memcpy(to, data, size);
}

static struct barrier *begin(void)
{
	struct barrier *b = barrier_new(ask, NULL, on_answer);

	assert_non_null(b);
	memset(told, 0, sizeof(told));
	looks = 0;
	gone = false;
	return b;
}

static void read_whole(struct barrier *b, const char *letter)
{
	barrier_read(b, 0, BARRIER_SIZE, (void *)letter);
}

#define SEVEN "                   7\n"
#define EIGHT "                   8\n"

TEST(readers_during_a_look_share_the_next)
{
	struct barrier *b = begin();

	read_whole(b, "a");
	read_whole(b, "b");
	read_whole(b, "c");
	assert_int_equal(looks, 1);
	assert_string_equal(told['a'], "");
	barrier_seen(b, 7);
	assert_string_equal(told['a'], SEVEN);
	assert_string_equal(told['b'], "");
	assert_int_equal(looks, 2);
	barrier_seen(b, 8);
	assert_string_equal(told['b'], EIGHT);
	assert_string_equal(told['c'], EIGHT);
	assert_int_equal(looks, 2);
	read_whole(b, "d");
	read_whole(b, "e");
	assert_int_equal(looks, 3);
	barrier_seen(b, 0); /* it failed */
	assert_string_equal(told['d'], "error");
	barrier_free(b);
	assert_string_equal(told['e'], "error");
}

TEST(nobody_looks_any_more)
{
	struct barrier *b = begin();

	read_whole(b, "a");
	read_whole(b, "b");
	gone = true;
	barrier_seen(b, 7);
	assert_string_equal(told['a'], SEVEN);
	assert_string_equal(told['b'], "error");
	read_whole(b, "c");
	assert_string_equal(told['c'], "error");
	gone = false;
	read_whole(b, "d");
	read_whole(b, "e");
	barrier_over(b);
	assert_string_equal(told['d'], "error");
	assert_string_equal(told['e'], "error");
	barrier_free(b);
}

TEST(too_many_readers)
{
	static char letters[BARRIER_READERS_MAX + 1];
	struct barrier *b = begin();

	for (int i = 0; i < BARRIER_READERS_MAX; i++) {
		letters[i] = (char)('0' + i);
		read_whole(b, &letters[i]);
	}
	read_whole(b, "x");
	assert_string_equal(told['x'], "busy");
	barrier_seen(b, 7); /* of one reader */
	assert_string_equal(told['0'], SEVEN);
	read_whole(b, "y");
	assert_string_equal(told['y'], "");
	read_whole(b, "z");
	assert_string_equal(told['z'], "busy");
	barrier_free(b);
	assert_string_equal(told['y'], "error");
}
