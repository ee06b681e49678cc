/* SPDX-License-Identifier: MIT */
/* Directories for one run among other users'; split.bats and the sweep have those of killed runs. */
#include "packer/files/staging.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "packer/files/below.h"
#include "packer/files/spill_dir.h"

#define PREFIX ".test-"

static char top[64];

static int setup(void **state)
{
	strcpy(top, "/tmp/kpack-test-temp-XXXXXX");
	assert_non_null(mkdtemp(top));
	assert_int_equal(chdir(top), 0);
	return 0;
}

/* Fails if something is left. */
static int teardown(void **state)
{
	return chdir("/") | rmdir(top);
}

static void make(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	close(fd);
}

/* Another user's directory is neither used nor removed. */
TEST(test_not_ours, setup, teardown)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(PREFIX "theirs", 0700), 0);
	assert_int_equal(chown(PREFIX "theirs", 1000, 1000), 0);
	temp_dir_remove_left(top, PREFIX, NULL);
	assert_int_equal(rmdir(PREFIX "theirs"), 0);
}

/*
 * In a directory of another user, who can give root's directories any name, root removes
 * only what it made for a run.
 */
TEST(test_renamed_by_another_user, setup, teardown)
{
	char left[PATH_MAX] = "";
	struct temp_dir t;
	struct stat st;
	int to[2], status;
	pid_t run;

	if (geteuid() != 0)
		skip();
	assert_int_equal(pipe(to), 0);
	run = fork();
	if (run == 0) { /* a run that is killed */
		if (temp_dir_open(&t, top, PREFIX, NULL) ||
		    write(to[1], t.path, strlen(t.path)) < 0)
			_exit(1);
		_exit(0);
	}
	assert_true(waitpid(run, &status, 0) == run && status == 0);
	assert_true(read(to[0], left, sizeof(left) - 1) > 0);
	close(to[0]);
	close(to[1]);
	assert_int_equal(mkdir("roots", 0755), 0);
	make("roots/file");
	assert_int_equal(chown(top, 1000, 1000), 0);
	assert_int_equal(rename("roots", PREFIX "abcdef"), 0);
	temp_dir_remove_left(top, PREFIX, NULL);
	assert_int_equal(stat(PREFIX "abcdef/file", &st), 0);
	if (setxattr(top, "trusted.kpack.test", "", 0, 0) == 0) /* root may leave marks */
		assert_int_equal(stat(left, &st), -1);
	else
		assert_int_equal(rmdir(left), 0);
	assert_int_equal(unlink(PREFIX "abcdef/file"), 0);
	assert_int_equal(rmdir(PREFIX "abcdef"), 0);
}

/* A run that packs several trees, one after the other: no directory stays open. */
TEST(test_spill_dirs, setup, teardown)
{
	int before = open(top, O_PATH), after;

	close(before);
	spill_dir_begin(top);
	spill_dir_begin("/");
	spill_dir_end();
	after = open(top, O_PATH);
	close(after);
	assert_int_equal(after, before);
}
