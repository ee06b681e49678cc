/* SPDX-License-Identifier: MIT */
#include "fs/tree/readers.h"
#include "tests/unit/unit.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

static struct classes classes;

static int setup(void **state)
{
	assert_true(classes_init(&classes, 8));
	return 0;
}

static int teardown(void **state)
{
	classes_fini(&classes);
	return 0;
}

static bool reads(struct readers r, struct caller who)
{
	struct classes c = {.known = 1};

	c.list[0].readers = r;
	return classes_read_by(&c, &who) == 1;
}

/* As the kernel does: the first of owner, group and others that fits decides. */
TEST(the_first_that_fits_decides)
{
	const struct caller owner = {1, 9, 1}, group = {2, 5, 0}, member = {2, 9, 1},
			    other = {2, 9, 0};
	const struct {
		mode_t mode;
		bool owner, group, other;
	} rows[] = {
		{0, false, false, false},   {0400, true, false, false},
		{0440, true, true, false},  {0444, true, true, true},
		{0040, false, true, false}, {0404, true, false, true},
		{0004, false, false, true}, {0044, false, true, true},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct readers r = {1, 5, rows[i].mode};

		assert_int_equal(reads(r, owner), rows[i].owner);
		assert_int_equal(reads(r, group), rows[i].group);
		assert_int_equal(reads(r, member), rows[i].group);
		assert_int_equal(reads(r, other), rows[i].other);
	}
}

TEST(equal_readers_are_one_class, setup, teardown)
{
	assert_int_equal(classes_add(&classes, (struct readers){1, 1, 0400}), 0);
	assert_int_equal(classes_add(&classes, (struct readers){1, 1, 0440}), 1);
	assert_int_equal(classes_add(&classes, (struct readers){1, 2, 0400}), 2);
	assert_int_equal(classes_add(&classes, (struct readers){2, 1, 0400}), 3);
	assert_int_equal(classes_add(&classes, (struct readers){1, 1, 0440}), 1);
	assert_int_equal(classes.known, 4);
}

/* What has no class of its own is hidden, and not shown to another class. */
TEST(too_many_classes_are_read_by_nobody, setup, teardown)
{
	unsigned last = 0;

	for (uid_t u = 1; u < 200; u++)
		last = classes_add(&classes, (struct readers){u, u, 0444});
	assert_int_equal(classes.known, CLASSES_MAX);
	assert_int_equal(last, CLASSES_MAX - 1);
	assert_true(readers_same(classes.list[last].readers, no_readers));
	assert_int_equal(classes_add(&classes, (struct readers){7, 7, 0444}),
			 CLASSES_MAX - 1);
	assert_int_equal(classes_read_by(&classes, &(struct caller){300, 300, 0}),
			 UINT64_MAX >> 1);
}

TEST(times_and_sizes_are_those_of_the_class, setup, teardown)
{
	const struct stat one = {.st_mtim = {5, 0}, .st_size = 10},
			  two = {.st_mtim = {9, 1}, .st_size = 20};

	classes_note(&classes, 0, classes_add(&classes, (struct readers){1, 1, 0444}),
		     &one);
	classes_note(&classes, 1, classes_add(&classes, (struct readers){1, 1, 0400}),
		     &two);
	classes_note(&classes, 2, classes_add(&classes, (struct readers){1, 1, 0400}),
		     &one);
	classes.count = classes.known;
	assert_int_equal(classes.list[1].bytes, 30);
	assert_int_equal(classes.list[1].newest.tv_sec, 9);
	assert_int_equal(classes_public_time(&classes).tv_sec, 5);
	assert_true(classes.values[0] != classes.values[1]);
	assert_true(classes.values[1] == classes.values[2]);
}
