/* SPDX-License-Identifier: MIT */
/* Directories for one run: they are removed, and so are those of killed runs. */
#include "packer/files/staging.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "packer/files/below.h"

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

static int recovered;

static void recover(int dir, int base)
{
	struct stat st;

	assert_int_equal(fstatat(dir, "file", &st, 0), 0);
	assert_int_equal(fstatat(base, PREFIX "abcdef", &st, 0), 0);
	recovered++;
}

TEST(test_left, setup, teardown)
{
	int lock;

	assert_int_equal(mkdir(PREFIX "abcdef", 0700), 0);
	make(PREFIX "abcdef/file");
	assert_int_equal(mkdir(PREFIX "living", 0700), 0);
	lock = open(PREFIX "living", O_RDONLY);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	assert_int_equal(mkdir(PREFIX "longer-name", 0700), 0);
	assert_int_equal(mkdir("away", 0700), 0);
	make("away/file");
	assert_int_equal(symlink("away", PREFIX "link-1"), 0);
	temp_dir_remove_left(top, PREFIX, recover);
	assert_int_equal(recovered, 1);
	assert_int_equal(access(PREFIX "abcdef", F_OK), -1);
	assert_int_equal(close(lock), 0);
	assert_int_equal(rmdir(PREFIX "living"), 0);
	assert_int_equal(rmdir(PREFIX "longer-name"), 0);
	assert_int_equal(unlink(PREFIX "link-1"), 0);
	assert_int_equal(unlink("away/file"), 0);
	assert_int_equal(rmdir("away"), 0);
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
