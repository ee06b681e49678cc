/* SPDX-License-Identifier: MIT */
/*
 * Paths by steps, compared with what the kernel finds; in other mounts, too, which is where
 * root steps.
 */
#include "core/base/path_walk.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "core/base/path_step.h"
#include "tests/unit/silent_mount.h"

static char top[64];

/* Whether this process has a table of mounts of its own. */
static bool may_mount;

/* Run a shell command in the directory. */
static void run(const char *command)
{
	char line[1024];

	snprintf(line, sizeof(line), "cd %s && %s", top, command);
	assert_int_equal(system(line), 0);
}

static const char *at(const char *rest)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", top, rest);
	return path;
}

static int setup(void **state)
{
	strcpy(top, "/tmp/kpack-walk-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	run("mkdir -p a/mount bound");
	/* what is in another mount if that is possible */
	if (may_mount && mount("of-the-test", at("a/mount"), "tmpfs", 0, NULL))
		return -1;
	run("cd a/mount && mkdir -p b/c && echo text >b/c/file && mkfifo b/fifo && "
	    "ln -s b/c down && ln -s ../mount/b up && ln -s $PWD/down/file abs && "
	    "ln -s none dangling && ln -s self self && ln -s / root");
	return 0;
}

static int teardown(void **state)
{
	umount2(at("a/mount/b"), MNT_DETACH);
	umount2(at("bound"), MNT_DETACH);
	umount2(at("a/mount"), MNT_DETACH);
	run("rm -rf \"$PWD\"");
	return 0;
}

/* The error of a call that returned STATUS. */
static int error_of(int status)
{
	return status < 0 ? errno : 0;
}

static void assert_same(const char *path)
{
	struct stat ours, kernels;
	int error, fd;

	for (int follow = 0; follow < 2; follow++) {
		error = error_of(follow ? stat(path, &kernels) : lstat(path, &kernels));
		assert_int_equal(error_of(kp_path_stat(path, follow, &ours)), error);
		if (error)
			continue;
		assert_int_equal(ours.st_dev, kernels.st_dev);
		assert_int_equal(ours.st_ino, kernels.st_ino);
	}
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	error = error_of(fd);
	if (fd >= 0)
		close(fd);
	fd = kp_path_open(path, O_RDONLY | O_NONBLOCK);
	assert_int_equal(error_of(fd), error);
	if (fd < 0)
		return;
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_false(fcntl(fd, F_GETFL) & O_PATH);
	close(fd);
}

TEST(paths_lead_where_the_kernel_finds_them, setup, teardown)
{
	static const char *const paths[] = {
		"a",
		"a/mount",
		"a/mount/",
		"a/mount/b/c/file",
		"a//mount/./b/../b/c",
		"a/mount/down/file",
		"a/mount/up/c/file",
		"a/mount/abs",
		"a/mount/up/../down",
		"a/mount/dangling",
		"a/mount/dangling/x",
		"a/mount/self",
		"a/mount/self/x",
		"a/mount/b/c/file/x",
		"a/mount/none",
		"a/mount/b/fifo",
		"a/mount/root",
		"a/mount/root/proc/self/exe",
		"a/mount/../mount/..",
		"..",
	};
	char path[64], name[NAME_MAX + 2] = "";
	int fd;

	for (size_t i = 0; i < COUNT(paths); i++)
		assert_same(at(paths[i]));
	assert_same("/");
	assert_same("/proc/self/mounts");
	assert_same("/dev/null");
	assert_same("");
	memset(name, 'x', sizeof(name) - 1);
	assert_same(at(name));
	/* links of /proc lead to what is open */
	fd = open(at("a/mount/b"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/c/file", fd);
	assert_same(path);
	assert_int_equal(chdir(at("a/mount")), 0);
	assert_same("down/file");
	assert_same("");
	assert_int_equal(chdir("/"), 0);
	close(fd);
}

/* A file system that was passed can be unmounted as soon as it is forgotten. */
TEST(what_is_forgotten_is_not_in_use, setup, teardown)
{
	struct stat st;

	if (!may_mount)
		skip();
	assert_int_equal(kp_path_stat(at("a/mount/b/c/file"), true, &st), 0);
	kp_step_forget();
	assert_int_equal(umount2(at("a/mount"), 0), 0);
}

/* As fs.protected_symlinks. */
TEST(no_link_of_others_in_a_shared_directory, setup, teardown)
{
	struct stat st;

	if (!may_mount)
		skip();
	run("chmod 1777 a/mount && ln -s b a/mount/theirs && chown -h 1000 "
	    "a/mount/theirs");
	assert_int_equal(kp_path_stat(at("a/mount/down"), true, &st), 0);
	assert_int_equal(kp_path_stat(at("a/mount/theirs"), false, &st), 0);
	assert_int_equal(kp_path_stat(at("a/mount/theirs"), true, &st), -1);
	assert_int_equal(errno, EACCES);
	/* the kernel follows one on the way */
	assert_int_equal(kp_path_stat(at("a/mount/theirs/c"), true, &st), 0);
	run("chmod 0777 a/mount");
	assert_int_equal(kp_path_stat(at("a/mount/theirs"), true, &st), 0);
}

static void assert_refused(const char *path)
{
	struct stat st;

	for (int follow = 0; follow < 2; follow++) {
		errno = 0;
		assert_int_equal(kp_path_stat(path, follow, &st), -1);
		assert_int_equal(errno, EREMOTE);
	}
	assert_int_equal(kp_path_open(path, O_RDONLY | O_NONBLOCK), -1);
	assert_int_equal(errno, EREMOTE);
}

TEST(mounts_of_others_are_not_entered, setup, teardown)
{
	struct kpackx_error why = {0};
	int connection;

	if (!may_mount)
		skip();
	/* in the mount, and in the one of the root directory */
	for (int i = 0; i < 2; i++) {
		connection = silent_mount(at(i ? "bound" : "a/mount/b"), 1000, S_IFDIR);
		assert_true(connection >= 0);
		assert_refused(at(i ? "bound" : "a/mount/b"));
		assert_refused(at(i ? "bound/x" : "a/mount/down/file"));
		assert_refused(at(i ? "bound/x/../.." : "a/mount/up/x"));
		kp_path_fail(&why, "cannot open");
		assert_has(why.text, "another user has mounted");
		silent_unmount(at(i ? "bound" : "a/mount/b"), connection);
	}
	assert_same(at("a/mount/up/c/file"));
}

static int begin_suite(void **state)
{
	may_mount = kp_step_is_guarded() && access("/dev/fuse", R_OK | W_OK) == 0 &&
		    unshare(CLONE_NEWNS) == 0 &&
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	return 0;
}

SUITE(begin_suite, NULL);
