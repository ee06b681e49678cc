/* SPDX-License-Identifier: MIT */
/* Paths below a root, and operands: which links are followed. */
#include "packer/files/below.h"
#include <errno.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include "tests/unit/scratch.h"

/* A tree, which is a root, and a directory that nobody may be led to. */
static int setup(void **state)
{
	assert_ok(scratch_begin(state));
	make("root/", "root/a/", "root/a/b/", "secret/", "secret/b/",
	     "root/a/b/file=inside", "secret/b/file=secret", "secret/file=secret",
	     "root/out>../secret", "root/in>a/b", "root/a/b/up>../file",
	     "root/a/link>b/file", "root/a/b/away>../../../secret/file", "root/loop>loop",
	     NULL);
	return (int)below_root(at("root"), NULL);
}

static void assert_fails(int status, int error)
{
	int now = errno;

	assert_int_equal(status, -1);
	assert_int_equal(now, error);
}

TEST(test_links_in_a_root_are_not_followed, setup, scratch_end)
{
	struct kp_outfile out;
	struct kpackx_error why;
	struct stat st;

	assert_reads(below_open(at("root/a/b/file"), O_RDONLY, 0), "inside");
	assert_reads(below_open(at("root//a/./b/../b//file"), O_RDONLY, 0), "inside");
	assert_fails(below_open(at("root/a/link"), O_RDONLY, 0), ELOOP);
	assert_fails(below_open(at("root/out/file"), O_RDONLY, 0), ELOOP);
	assert_fails(below_open(at("root/in/file"), O_RDONLY, 0), ELOOP);
	assert_fails(below_open(at("root/in/file"), O_WRONLY | O_CREAT, 0600), ELOOP);
	assert_fails(below_mkdir(at("root/out/new"), 0700), ELOOP);
	assert_fails(below_unlink(at("root/out/file")), ELOOP);
	assert_fails(below_rmdir(at("root/out/b")), ELOOP);
	assert_fails(below_chmod(at("root/out/file"), 0600), ELOOP);
	assert_fails(below_chmod(at("root/a/link"), 0600), ELOOP);
	assert_fails(below_rename(at("root/a/b/file"), at("root/out/x"), 0), ELOOP);
	assert_fails(below_rename(at("root/out/file"), at("root/a/b/x"), 0), ELOOP);
	assert_io_error(below_mkdirs(at("root/out/x/y"), 0755, &why));
	assert_has(why.text, "symbolic link");
	assert_io_error(below_outfile_open(&out, at("root/out/x"), 0644, &why));
	assert_ok(below_lstat(at("root/out"), &st));
	assert_true(S_ISLNK(st.st_mode));
	assert_ok(access(at("secret/file"), F_OK));
	assert_int_equal(access(at("secret/x"), F_OK), -1);
	/* a path that leads above the root is an operand */
	assert_reads(below_open(at("root/a/../../secret/file"), O_RDONLY, 0), "secret");
}

/* Another directory gets the root's name: the calls stay in the one that was opened. */
TEST(test_a_root_stays_what_it_was, setup, scratch_end)
{
	struct stat st;

	assert_ok(rename(at("root"), at("moved")));
	assert_ok(symlink("secret", at("root")));
	assert_ok(below_mkdir(at("root/made"), 0700));
	assert_ok(stat(at("moved/made"), &st));
	assert_int_equal(access(at("secret/made"), F_OK), -1);
	assert_fails(below_lstat(at("root/file"), &st), ENOENT);
	/* it is known already, and not opened again */
	assert_ok(below_make_root(at("root"), 0755, NULL));
	assert_fails(below_lstat(at("root/file"), &st), ENOENT);
}

TEST(test_reading_follows_links_that_stay, setup, scratch_end)
{
	struct stat st;

	assert_reads(below_open_following(at("root/a/link"), O_RDONLY), "inside");
	assert_reads(below_open_following(at("root/in/file"), O_RDONLY), "inside");
	assert_fails(below_open_following(at("root/a/b/up"), O_RDONLY), ENOENT);
	assert_fails(below_open_following(at("root/loop"), O_RDONLY), ELOOP);
	/* it leads out, but nobody else can have made it */
	assert_reads(below_open_following(at("root/a/b/away"), O_RDONLY), "secret");
	assert_ok(below_stat(at("root/out"), &st));
	assert_true(S_ISDIR(st.st_mode));
	if (geteuid() != 0)
		return;
	assert_ok(chown(at("root/a/b"), 1000, 1000));
	assert_fails(below_open_following(at("root/a/b/away"), O_RDONLY), ELOOP);
	assert_ok(chown(at("root"), 1000, 1000));
	assert_fails(below_stat(at("root/out/file"), &st), ELOOP);
}

TEST(test_operands, setup, scratch_end)
{
	char proc[40];
	struct stat st;
	int fd;

	assert_ok(symlink("secret", at("other")));
	assert_ok(symlink(at("other/b"), at("deep")));
	assert_reads(below_open(at("other/file"), O_RDONLY, 0), "secret");
	assert_reads(below_open(at("deep/file"), O_RDONLY, 0), "secret");
	assert_reads(below_open(at("deep/../b/file"), O_RDONLY, 0), "secret");
	assert_fails(below_open(at("deep"), O_RDONLY, 0), ELOOP);
	assert_ok(below_stat(at("deep"), &st));
	assert_ok(below_mkdirs(at("deep/x/y"), 0755, NULL));
	assert_ok(access(at("secret/b/x/y"), F_OK));
	fd = open(at("secret/file"), O_RDONLY);
	snprintf(proc, sizeof(proc), "/dev/fd/%d", fd);
	assert_reads(below_open_following(proc, O_RDONLY), "secret");
	close(fd);
	assert_fails(below_open(at("secret/file/x"), O_RDONLY, 0), ENOTDIR);
	assert_fails(below_open(at("secret/file/"), O_RDONLY, 0), ENOTDIR);
	assert_fails(below_open_following(at("secret/file/."), O_RDONLY), ENOTDIR);
	assert_fails(below_lstat(at("secret/file//"), &st), ENOTDIR);
	assert_ok(below_lstat(at("secret/b/"), &st));
	assert_ok(below_stat(at("deep/"), &st));
	assert_fails(below_open(at("none/x"), O_RDONLY, 0), ENOENT);
	if (geteuid() != 0)
		return;
	/* somebody who owns the directory, or may write in it, can exchange the links */
	assert_ok(chown(top, 1000, 0));
	assert_fails(below_open(at("other/file"), O_RDONLY, 0), ELOOP);
	assert_fails(below_stat(at("deep"), &st), ELOOP);
	assert_io_error(below_root(at("other"), NULL));
	assert_io_error(below_mkdirs(at("deep/z"), 0755, NULL));
	assert_ok(chown(top, 0, 0));
	assert_ok(chmod(top, 0770));
	assert_fails(below_open(at("other/file"), O_RDONLY, 0), ELOOP);
	/* in a sticky directory root's own links stay */
	assert_ok(chmod(top, 01777));
	assert_reads(below_open(at("other/file"), O_RDONLY, 0), "secret");
	assert_ok(lchown(at("other"), 1000, 1000));
	assert_fails(below_open(at("other/file"), O_RDONLY, 0), ELOOP);
}

/* Opening a FIFO wakes its writer, and opening a device can do more. */
TEST(test_only_regular_files_are_opened, setup, scratch_end)
{
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), fd = -1;
	char events[4096];
	struct kpackx_error why;
	struct stat st;

	assert_true(watch >= 0);
	assert_ok(mkfifo("root/a/fifo", 0644));
	make("root/a/to-fifo>fifo", NULL);
	assert_true(inotify_add_watch(watch, at("root/a/fifo"), IN_OPEN) >= 0);
	assert_true(inotify_add_watch(watch, at("root/a/b/file"), IN_OPEN) >= 0);
	assert_io_error(below_file_open(at("root/a/fifo"), &fd, &st, &why));
	assert_io_error(below_file_open(at("root/a/to-fifo"), &fd, &st, &why));
	assert_io_error(below_file_open_nofollow(at("root/a/fifo"), &fd, &st, &why));
	assert_fails((int)read(watch, events, sizeof(events)), EAGAIN);
	assert_ok(below_file_open(at("root/a/link"), &fd, &st, &why));
	assert_reads(fd, "inside");
	assert_true(read(watch, events, sizeof(events)) > 0);
	assert_io_error(below_file_open_nofollow(at("root/a/link"), &fd, &st, &why));
	assert_has(why.text, "symbolic link");
	assert_ok(below_file_open_nofollow(at("root/a/b/file"), &fd, &st, &why));
	assert_reads(fd, "inside");
	close(watch);
}

/* --- mounts --------------------------------------------------------------------------- */

/* Whether this process has a table of mounts of its own. */
static bool may_mount;

static int teardown_mounts(void **state)
{
	umount2(at("root/a/b"), MNT_DETACH);
	return scratch_end(state);
}

TEST(test_mounts_in_a_root_are_entered, setup, teardown_mounts)
{
	struct stat st;
	int fd;

	if (!may_mount)
		skip();
	assert_ok(mount("user_id=1000", at("root/a/b"), "tmpfs", 0, NULL));
	make("root/a/b/file=mounted", "root/a/b/link>file", NULL);
	assert_ok(below_stat(at("root/a/b/link"), &st));
	assert_ok(below_lstat(at("root/a/b/file"), &st));
	assert_int_equal(st.st_size, 7);
	assert_ok(below_mkdir(at("root/a/b/new"), 0755));
	fd = below_open(at("root/a/b/new/file"), O_WRONLY | O_CREAT, 0640);
	assert_true(fd >= 0);
	assert_ok(fstat(fd, &st));
	assert_int_equal(st.st_mode, S_IFREG | 0640);
	close(fd);
	fd = below_open(at("root/a/b"), O_RDONLY | O_DIRECTORY, 0);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(below_open(at("root/a/b/link"), O_RDONLY, 0), -1);
	assert_int_equal(errno, ELOOP);
	umount2(at("root/a/b"), MNT_DETACH);
}

TEST(test_the_text_says_that_a_link_is_refused)
{
	struct kpackx_error why;

	errno = ELOOP;
	assert_io_error(below_fail(&why, "%s/%s: cannot remove", "dir", "%s"));
	assert_has(why.text, "dir/%s: cannot remove: it, or a directory on its "
			     "way, is a symbolic link");
	errno = EACCES;
	below_fail(&why, "%s/%s: cannot remove", "dir", "%s");
	assert_string_equal(why.text, "dir/%s: cannot remove: Permission denied");
	assert_int_equal(why.sys_errno, EACCES);
}

static int begin_suite(void **state)
{
	/* before a root is opened, which stays in the table that it was opened in */
	may_mount = geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
		    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	return 0;
}

SUITE(begin_suite, NULL);
