/* SPDX-License-Identifier: MIT */
/* What a path leads to: which file is replaced, and into which one root writes. */
#include "packer/files/below.h"
#include "packer/files/target.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/unit/unit.h"

static int setup(void **state)
{
	char path[] = "/tmp/kpack-test-target-XXXXXX";
	int fd;

	assert_non_null(mkdtemp(path));
	assert_int_equal(chdir(path), 0);
	assert_int_equal(mkdir("dir", 0755), 0);
	fd = open("dir/file", O_WRONLY | O_CREAT, 0644);
	assert_int_equal(write(fd, "old", 3), 3);
	close(fd);
	assert_int_equal(symlink("dir/file", "link"), 0);
	assert_int_equal(symlink("dir/none", "dangling"), 0);
	return 0;
}

static int teardown(void **state)
{
	char path[64], command[80];

	assert_non_null(getcwd(path, sizeof(path)));
	snprintf(command, sizeof(command), "rm -rf %s", path);
	return system(command) | chdir("/");
}

static struct below_target open_target(const char *path)
{
	struct below_target t;

	assert_int_equal(below_target_open(&t, path), 0);
	return t;
}

static bool is_trusted(const char *path)
{
	struct below_target t = open_target(path);
	bool yes = below_target_trusted(&t);

	below_target_close(&t);
	return yes;
}

/* Root is not led to other files, and writes into none that is not its own there. */
TEST(test_other_users, setup, teardown)
{
	struct below_target t;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chown("dir/file", 1000, 1000), 0);
	assert_true(is_trusted("dir/file"));
	assert_int_equal(chmod("dir", 01777), 0);
	assert_false(is_trusted("dir/file"));
	assert_int_equal(chmod("dir", 0755), 0);
	assert_int_equal(chown("dir", 1000, 1000), 0);
	assert_false(is_trusted("link"));
	assert_int_equal(chown("dir/file", 0, 0), 0);
	assert_true(is_trusted("link"));
	/* another user may have made the link to root's file */
	assert_int_equal(link("dir/file", "dir/hard"), 0);
	assert_false(is_trusted("link"));
	assert_int_equal(chown(".", 1000, 1000), 0);
	assert_int_equal(below_target_open(&t, "link"), -1);
	assert_int_equal(errno, ELOOP);
}

/*
 * The last: from here on "dir" is a root.  In it, links are followed by the same rule as outside
 * of one.
 */
TEST(test_in_a_root, setup, teardown)
{
	struct below_target t;

	assert_int_equal(symlink("file", "dir/inside"), 0);
	assert_int_equal(below_root("dir", NULL), KPACK_SUCCESS);
	t = open_target("dir/inside");
	assert_string_equal(t.name, "file");
	below_target_close(&t);
	if (geteuid() != 0)
		return;
	assert_int_equal(chown("dir", 1000, 1000), 0);
	assert_int_equal(below_target_open(&t, "dir/inside"), -1);
	assert_int_equal(errno, ELOOP);
}

static int begin_suite(void **state)
{
	umask(022);
	return 0;
}

SUITE(begin_suite, NULL);
