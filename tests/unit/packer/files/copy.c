/* SPDX-License-Identifier: MIT */
/* Copies of files that were looked at before, and links to copies that others can exchange. */
#include "packer/files/copy.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "packer/files/below.h"

static char top[64];

/* TOP/REST; a few results are valid at once. */
static const char *at(const char *rest)
{
	static char paths[8][300];
	static unsigned turn;
	char *path = paths[turn++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", top, rest);
	return path;
}

/* Make the file PATH with TEXT and an old time of modification; returns its identity. */
static struct file_identity write_text(const char *path, const char *text)
{
	const struct timespec times[2] = {{1000, 0}, {1000, 0}};
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(futimens(fd, times), 0);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	return file_identity_of(&st);
}

static void assert_text(const char *path, const char *text)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW);
	char buf[16] = "";

	assert_true(fd >= 0);
	assert_int_equal(read(fd, buf, sizeof(buf) - 1), strlen(text));
	assert_string_equal(buf, text);
	close(fd);
}

static ino_t inode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_ino;
}

static struct file_identity look_at(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(at(name), &st), 0);
	return file_identity_of(&st);
}

static int setup(void **state)
{
	strcpy(top, "/tmp/kpack-test-copy-XXXXXX");
	assert_non_null(mkdtemp(top));
	assert_int_equal(below_root(top, NULL), KPACK_SUCCESS);
	return 0;
}

static int teardown(void **state)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static void assert_changed(const char *from, const struct file_identity *seen)
{
	struct kpackx_error why;

	assert_int_equal(copy_seen(from, seen, at("copy"), &why), KPACK_ERROR_IO_ERROR);
	assert_has(why.text, "was changed meanwhile");
	assert_int_equal(access(at("copy"), F_OK), -1);
}

TEST(test_only_what_was_seen, setup, teardown)
{
	struct file_identity seen = write_text(at("file"), "seen");

	assert_int_equal(copy_seen(at("file"), &seen, at("ok"), NULL), KPACK_SUCCESS);
	assert_text(at("ok"), "seen");
	/* the same size and time, but another file */
	write_text(at("new"), "fake");
	assert_int_equal(rename(at("new"), at("file")), 0);
	assert_changed(at("file"), &seen);
	/* the same file, with another content and its old time */
	seen = look_at("file");
	assert_int_equal(truncate(at("file"), 3), 0);
	assert_int_equal(truncate(at("file"), 4), 0);
	assert_int_equal(utimensat(AT_FDCWD, at("file"),
				   (struct timespec[2]){seen.mtime, seen.mtime}, 0),
			 0);
	assert_changed(at("file"), &seen);
	/* a link that leads elsewhere now */
	assert_int_equal(symlink("here", at("link")), 0);
	seen = look_at("link");
	assert_int_equal(copy_seen(at("link"), &seen, at("linked"), NULL), KPACK_SUCCESS);
	assert_int_equal(symlink("evil", at("new")), 0);
	assert_int_equal(rename(at("new"), at("link")), 0);
	assert_changed(at("link"), &seen);
	/* what was a link is a file now, which is not read */
	write_text(at("new"), "fake");
	assert_int_equal(rename(at("new"), at("link")), 0);
	assert_changed(at("link"), &seen);
}

TEST(test_attributes_of_links_and_fifos, setup, teardown)
{
	const struct timespec times[2] = {{1000, 5}, {2000, 5}};
	struct file_identity seen;
	struct stat st, was;

	assert_int_equal(symlink("nowhere", at("link")), 0);
	assert_int_equal(mkfifo(at("fifo"), 0640), 0);
	for (int i = 0; i < 2; i++) {
		const char *from = at(i ? "fifo" : "link"), *to = at(i ? "FIFO" : "LINK");

		if (geteuid() == 0)
			assert_int_equal(lchown(from, 1000, 1001), 0);
		assert_int_equal(utimensat(AT_FDCWD, from, times, AT_SYMLINK_NOFOLLOW),
				 0);
		assert_int_equal(lstat(from, &was), 0);
		seen = file_identity_of(&was);
		assert_int_equal(copy_seen(from, &seen, to, NULL), KPACK_SUCCESS);
		assert_int_equal(lstat(to, &st), 0);
		assert_int_equal(st.st_mode, was.st_mode);
		assert_int_equal(st.st_uid, was.st_uid);
		assert_int_equal(st.st_gid, was.st_gid);
		assert_int_equal(st.st_mtim.tv_sec, 2000);
		assert_int_equal(st.st_mtim.tv_nsec, 5);
	}
}

/* The first path of a file with two may be another user's file when the second is made. */
TEST(test_links_to_copies, setup, teardown)
{
	struct file_identity seen = write_text(at("file"), "seen");

	assert_int_equal(copy_seen(at("file"), &seen, at("first"), NULL), KPACK_SUCCESS);
	assert_int_equal(copy_link(at("first"), at("file"), &seen, at("second"), NULL),
			 KPACK_SUCCESS);
	assert_int_equal(inode_of(at("second")), inode_of(at("first")));
	write_text(at("fake"), "evil");
	if (geteuid() == 0)
		assert_int_equal(chown(at("fake"), 1000, 1000), 0);
	else
		assert_int_equal(utimensat(AT_FDCWD, at("fake"), NULL, 0), 0);
	assert_int_equal(rename(at("fake"), at("first")), 0);
	assert_int_equal(copy_link(at("first"), at("file"), &seen, at("second"), NULL),
			 KPACK_SUCCESS);
	assert_text(at("second"), "seen");
	/* nor is a link followed */
	assert_int_equal(unlink(at("first")), 0);
	assert_int_equal(symlink("file", at("first")), 0);
	assert_int_equal(copy_link(at("first"), at("file"), &seen, at("third"), NULL),
			 KPACK_SUCCESS);
	assert_text(at("third"), "seen");
}

/* At the end of a run, what has the name of a directory may be one of root's. */
TEST(test_directories_that_were_made, setup, teardown)
{
	struct file_identity made;
	struct kpackx_error why;
	struct stat st;

	assert_int_equal(mkdir(at("from"), 0755), 0);
	assert_int_equal(mkdir(at("private"), 0700), 0);
	assert_int_equal(mkdir(at("there"), 0700), 0);
	for (int i = 0; i < 2; i++) {
		const char *to = at(i ? "there" : "made");

		assert_int_equal(copy_directory(to, &made, NULL), KPACK_SUCCESS);
		assert_int_equal(rename(to, at("was")), 0);
		assert_int_equal(rename(at("private"), to), 0);
		assert_int_equal(copy_directory_attributes(at("from"), to, &made, &why),
				 KPACK_ERROR_IO_ERROR);
		assert_has(why.text, "another directory was put");
		assert_int_equal(lstat(to, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0700);
		assert_int_equal(rename(to, at("private")), 0);
		assert_int_equal(rename(at("was"), to), 0);
		assert_int_equal(copy_directory_attributes(at("from"), to, &made, &why),
				 KPACK_SUCCESS);
		assert_int_equal(lstat(to, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0755);
		/* one that is made again is another */
		assert_int_equal(rmdir(to), 0);
		assert_int_equal(copy_directory(to, &made, NULL), KPACK_SUCCESS);
		assert_int_equal(copy_directory_attributes(at("from"), to, &made, &why),
				 KPACK_SUCCESS);
	}
}
