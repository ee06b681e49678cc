/* SPDX-License-Identifier: MIT */
/* Directories for one run among other users'; split.bats and the sweep have those of killed runs. */
#include "packer/files/staging.h"
#include <limits.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include "tests/unit/scratch.h"
#include "packer/files/below.h"
#include "packer/files/spill_dir.h"

#define PREFIX ".test-"

/* Fails if something is left. */
static int teardown(void **state)
{
	return chdir("/") | rmdir(top);
}

/* Another user's directory is neither used nor removed. */
TEST(test_not_ours, scratch_begin, teardown)
{
	if (geteuid() != 0)
		skip();
	assert_ok(mkdir(PREFIX "theirs", 0700));
	assert_ok(chown(PREFIX "theirs", 1000, 1000));
	temp_dir_remove_left(top, PREFIX, NULL);
	assert_ok(rmdir(PREFIX "theirs"));
}

/*
 * In a directory of another user, who can give root's directories any name, root removes
 * only what it made for a run.
 */
TEST(test_renamed_by_another_user, scratch_begin, teardown)
{
	char left[PATH_MAX] = "";
	struct temp_dir t;
	struct stat st;
	int to[2], status;
	pid_t run;

	if (geteuid() != 0)
		skip();
	assert_ok(pipe(to));
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
	assert_ok(mkdir("roots", 0755));
	write_text("roots/file", "");
	assert_ok(chown(top, 1000, 1000));
	assert_ok(rename("roots", PREFIX "abcdef"));
	temp_dir_remove_left(top, PREFIX, NULL);
	assert_ok(stat(PREFIX "abcdef/file", &st));
	if (setxattr(top, "trusted.kpack.test", "", 0, 0) == 0) /* root may leave marks */
		assert_int_equal(stat(left, &st), -1);
	else
		assert_ok(rmdir(left));
	assert_ok(unlink(PREFIX "abcdef/file"));
	assert_ok(rmdir(PREFIX "abcdef"));
}

/* A run that packs several trees, one after the other: no directory stays open. */
TEST(test_spill_dirs, scratch_begin, teardown)
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
