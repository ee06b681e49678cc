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

static void write_new(const struct below_target *t)
{
	struct kp_outfile out;

	assert_int_equal(below_target_outfile(t, &out, 0644, NULL), KPACK_SUCCESS);
	assert_int_equal(kp_outfile_pwrite(&out, 0, "new!", 4, NULL), KPACK_SUCCESS);
	assert_int_equal(kp_outfile_publish(&out, NULL), KPACK_SUCCESS);
}

static void assert_is(const char *path, mode_t type, off_t size)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & S_IFMT, type);
	if (type == S_IFREG)
		assert_int_equal(st.st_size, size);
}

/* The file at the end is replaced, in the directory that has it; links stay. */
TEST(test_replacing, setup, teardown)
{
	struct below_target t = open_target("link");
	struct stat st;

	assert_string_equal(t.name, "file");
	assert_int_equal(t.st.st_size, 3);
	assert_false(t.is_open);
	/* whatever leads there now */
	assert_int_equal(rename("dir", "moved"), 0);
	assert_int_equal(mkdir("dir", 0755), 0);
	write_new(&t);
	assert_is("moved/file", S_IFREG, 4);
	assert_is("link", S_IFLNK, 0);
	assert_int_equal(below_target_named(&t, &st), 0);
	assert_int_not_equal(st.st_ino, t.st.st_ino);
	assert_int_equal(below_target_unlink(&t), 0);
	assert_int_equal(access("moved/file", F_OK), -1);
	below_target_close(&t);
	t = open_target("dangling");
	assert_int_equal(t.fd, -1);
	write_new(&t);
	assert_is("dir/none", S_IFREG, 4);
	below_target_close(&t);
	assert_int_equal(below_target_open(&t, "none/x"), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(below_target_open(&t, "none/"), -1);
	assert_int_equal(errno, EISDIR);
	assert_int_equal(below_target_open(&t, "dir/none/"), -1);
	assert_int_equal(errno, ENOTDIR);
}

TEST(test_writing, setup, teardown)
{
	struct below_target t = open_target("link");
	char proc[40];
	int fd;

	assert_int_equal(below_target_access(&t, R_OK | W_OK), 0);
	fd = below_target_reopen(&t, O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, "more!", 5), 5);
	below_target_close(&t);
	assert_is("dir/file", S_IFREG, 5);
	/* as /dev/stdout */
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	assert_int_equal(symlink(proc, "stdout"), 0);
	t = open_target("stdout");
	assert_true(t.is_open);
	assert_int_equal(t.st.st_size, 5);
	assert_true(below_target_trusted(&t));
	below_target_close(&t);
	close(fd);
	t = open_target("dir");
	assert_true(S_ISDIR(t.st.st_mode));
	below_target_close(&t);
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
