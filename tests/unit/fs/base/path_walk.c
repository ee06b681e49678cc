/* SPDX-License-Identifier: MIT */
/*
 * Paths by steps, compared with what the kernel finds; in other mounts, too.
 */
#include "fs/base/path_walk.h"
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
	run("mkdir -p a/mount");
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
	umount2(at("a/mount"), MNT_DETACH);
	run("rm -rf \"$PWD\"");
	return 0;
}

/* The error of a call that returned STATUS. */
static int error_of(int status)
{
	return status < 0 ? errno : 0;
}

/* The walk reaches what stat finds, or fails with the same error. */
static void assert_same(const char *path)
{
	struct stat ours, kernels;
	int error = error_of(stat(path, &kernels));
	char name[NAME_MAX + 1];
	struct path_walk w;
	bool fine = path_walk_begin(&w, path);

	while (fine && path_walk_name(&w, name))
		fine = path_walk_step(&w, name);
	fine = fine && !errno;
	assert_int_equal(fine ? 0 : errno, error);
	if (fine) {
		assert_int_equal(fstat(w.at, &ours), 0);
		assert_int_equal(ours.st_dev, kernels.st_dev);
		assert_int_equal(ours.st_ino, kernels.st_ino);
	}
	path_walk_end(&w);
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

static int begin_suite(void **state)
{
	may_mount = geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	return 0;
}

SUITE(begin_suite, NULL);
