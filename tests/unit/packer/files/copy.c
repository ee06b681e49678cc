/* SPDX-License-Identifier: MIT */
/* Copies of files that were looked at before; written trees: hard links, and the attributes of directories. */
#include "packer/files/copy.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "packer/files/below.h"

static char top[64], out[80];
static struct kpackx_error why;

/* TOP/REST; a few results are valid at once. */
static const char *at(const char *rest)
{
	static char paths[8][300];
	static unsigned turn;
	char *path = paths[turn++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", top, rest);
	return path;
}

static struct stat stat_of(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(at(name), &st), 0);
	return st;
}

static struct file_identity seen(const char *name)
{
	const struct stat st = stat_of(name);

	return file_identity_of(&st);
}

static void make_file(const char *name, const char *text)
{
	int fd = open(at(name), O_WRONLY | O_CREAT | O_EXCL, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void assert_text(const char *name, const char *text)
{
	int fd = open(at(name), O_RDONLY | O_NOFOLLOW);
	char buf[16] = "";

	assert_true(fd >= 0);
	assert_int_equal(read(fd, buf, sizeof(buf) - 1), strlen(text));
	assert_string_equal(buf, text);
	close(fd);
}

static int setup(void **state)
{
	strcpy(top, "/tmp/kpack-test-write-XXXXXX");
	assert_non_null(mkdtemp(top));
	assert_int_equal(below_root(top, NULL), KPACK_SUCCESS);
	assert_int_equal(chmod(top, 0777), 0);
	assert_int_equal(mkdir(at("in"), 0755), 0);
	snprintf(out, sizeof(out), "%s", at("out"));
	return 0;
}

static int teardown(void **state)
{
	char command[200];

	snprintf(command, sizeof(command), "chmod -R u+w %s; rm -rf %s", top, top);
	return system(command);
}

/* Make the file NAME with TEXT and an old time of modification; returns its identity. */
static struct file_identity write_text(const char *name, const char *text)
{
	const struct timespec times[2] = {{1000, 0}, {1000, 0}};

	make_file(name, text);
	assert_int_equal(utimensat(AT_FDCWD, at(name), times, 0), 0);
	return seen(name);
}

/* Become an ordinary user, or root again, if root runs the test. */
static void become_user(bool ordinary)
{
	if (getuid() == 0)
		assert_int_equal(seteuid(ordinary ? 65534 : 0), 0);
}

/* Write IN/FROM as PATH; returns why it was left out. */
static char *put_entry(struct tree_write *w, const char *from, const char *path)
{
	const struct file_identity id = seen(from);
	char *left = NULL;

	if (tree_write_entry(w, path, at(from), &id, &left, &why))
		fail_msg("%s", why.text);
	return left;
}

static void assert_changed(const char *from, const struct file_identity *id)
{
	assert_int_equal(copy_seen(from, id, at("copy"), &why), KPACK_ERROR_IO_ERROR);
	assert_has(why.text, "was changed meanwhile");
	assert_int_equal(access(at("copy"), F_OK), -1);
}

TEST(test_only_what_was_seen, setup, teardown)
{
	struct file_identity id = write_text("file", "seen");

	assert_int_equal(copy_seen(at("file"), &id, at("ok"), NULL), KPACK_SUCCESS);
	assert_text("ok", "seen");
	/* the same size and time, but another file */
	write_text("new", "fake");
	assert_int_equal(rename(at("new"), at("file")), 0);
	assert_changed(at("file"), &id);
	/* the same file, with another content and its old time */
	id = seen("file");
	assert_int_equal(truncate(at("file"), 3), 0);
	assert_int_equal(truncate(at("file"), 4), 0);
	assert_int_equal(utimensat(AT_FDCWD, at("file"),
				   (struct timespec[2]){id.mtime, id.mtime}, 0),
			 0);
	assert_changed(at("file"), &id);
	/* a link that leads elsewhere now */
	assert_int_equal(symlink("here", at("link")), 0);
	id = seen("link");
	assert_int_equal(copy_seen(at("link"), &id, at("linked"), NULL), KPACK_SUCCESS);
	assert_int_equal(symlink("evil", at("new")), 0);
	assert_int_equal(rename(at("new"), at("link")), 0);
	assert_changed(at("link"), &id);
	/* what was a link is a file now, which is not read */
	write_text("new", "fake");
	assert_int_equal(rename(at("new"), at("link")), 0);
	assert_changed(at("link"), &id);
}

/* As an ordinary user, whom a directory's mode keeps out. */
TEST(test_directories_are_closed_last, setup, teardown)
{
	const struct timespec times[2] = {{1000, 0}, {2000, 0}},
			      old[2] = {{1000, 0}, {77, 0}};
	struct tree_write w;

	assert_int_equal(mkdir(at("in/a"), 0755), 0);
	assert_int_equal(mkdir(at("in/a/b"), 0755), 0);
	make_file("in/a/b/file", "text");
	assert_int_equal(chmod(at("in/a/b"), 0555), 0);
	assert_int_equal(chmod(at("in/a"), 0555), 0);
	assert_int_equal(utimensat(AT_FDCWD, at("in/a"), times, 0), 0);
	assert_int_equal(utimensat(AT_FDCWD, at("in/a/b"), times, 0), 0);
	assert_int_equal(chmod(at("in"), 0555), 0);
	assert_int_equal(utimensat(AT_FDCWD, at("in"), old, 0), 0);
	become_user(true);
	tree_write_begin(&w, out, false);
	assert_int_equal(tree_write_root(&w, &why), KPACK_SUCCESS);
	assert_int_equal(tree_write_directory(&w, "", at("in"), &why), KPACK_SUCCESS);
	assert_int_equal(tree_write_parents(&w, "a/b/x", at("in"), &why), KPACK_SUCCESS);
	/* a directory that the other tree lacks */
	assert_int_equal(tree_write_parents(&w, "new/x", at("in"), &why), KPACK_SUCCESS);
	assert_null(put_entry(&w, "in/a/b/file", "a/b/file"));
	make_file("out/a/b/old", "old");
	assert_int_equal(tree_write_remove(&w, "a/b/old", &why), KPACK_SUCCESS);
	assert_int_equal(tree_write_remove(&w, "a/b/old", &why), KPACK_SUCCESS);
	if (tree_write_finish(&w, &why))
		fail_msg("%s", why.text);
	tree_write_end(&w);
	assert_int_equal(stat_of("out").st_mode & 07777, 0555);
	assert_int_equal(stat_of("out").st_mtim.tv_sec, 77);
	assert_int_equal(chmod(at("out"), 0700), 0);
	become_user(false);
	assert_text("out/a/b/file", "text");
	assert_int_equal(access(at("out/a/b/old"), F_OK), -1);
	assert_int_equal(stat_of("out/a").st_mode & 07777, 0555);
	assert_int_equal(stat_of("out/a/b").st_mode & 07777, 0555);
	assert_int_equal(stat_of("out/a").st_mtim.tv_sec, 2000);
	assert_int_equal(stat_of("out/a/b").st_mtim.tv_sec, 2000);
	assert_int_equal(access(at("out/new"), F_OK), 0);
}

TEST(test_hard_links, setup, teardown)
{
	struct file_identity id;
	struct tree_write w;

	make_file("in/1", "text");
	assert_int_equal(link(at("in/1"), at("in/2")), 0);
	assert_int_equal(symlink("1", at("in/s")), 0);
	assert_int_equal(link(at("in/s"), at("in/t")), 0);
	tree_write_begin(&w, out, false);
	assert_int_equal(tree_write_root(&w, &why), KPACK_SUCCESS);
	assert_null(put_entry(&w, "in/1", "1"));
	assert_null(put_entry(&w, "in/2", "2"));
	assert_null(put_entry(&w, "in/s", "s"));
	assert_null(put_entry(&w, "in/t", "t"));
	assert_int_equal(stat_of("out/1").st_ino, stat_of("out/2").st_ino);
	assert_int_equal(stat_of("out/s").st_ino, stat_of("out/t").st_ino);
	assert_true(S_ISLNK(stat_of("out/t").st_mode));
	/* a link to what has other bytes than the file that was seen */
	make_file("out/3", "other");
	assert_int_equal(utimensat(AT_FDCWD, at("out/3"),
				   (struct timespec[2]){{0}, stat_of("in/1").st_mtim}, 0),
			 0);
	id = seen("in/1");
	assert_int_equal(tree_write_link(&w, "4", "3", NULL, &id, &why), KPACK_SUCCESS);
	assert_text("out/4", "other");
	/* it is another user's file now, or a link: only a copy of what was seen will do */
	assert_int_equal(unlink(at("out/3")), 0);
	assert_int_equal(symlink("1", at("out/3")), 0);
	assert_int_equal(tree_write_link(&w, "5", "3", at("in/1"), &id, &why),
			 KPACK_SUCCESS);
	assert_text("out/5", "text");
	assert_int_equal(tree_write_link(&w, "6", "3", NULL, &id, &why),
			 KPACK_ERROR_IO_ERROR);
	assert_has(why.text, "was changed meanwhile");
	tree_write_end(&w);
}

/* Errors name the tree's file, or in a tree without a name the file that is copied. */
TEST(test_names_in_errors, setup, teardown)
{
	struct file_identity id;
	struct tree_write w;

	make_file("in/1", "text");
	id = seen("in/1");
	for (int staged = 0; staged < 2; staged++) {
		char want[300];

		tree_write_begin(&w, out, staged);
		assert_int_equal(tree_write_root(&w, &why), KPACK_SUCCESS);
		assert_int_not_equal(
			tree_write_file(&w, "no/1", at("in/1"), &id, NULL, &why),
			KPACK_SUCCESS);
		snprintf(want, sizeof(want),
			 "%s: ", staged ? at("in/1") : at("out/no/1"));
		assert_memory_equal(why.text, want, strlen(want));
		/* the caller may remove a directory of its own tree */
		assert_int_equal(tree_write_directory(&w, "d", at("in"), &why),
				 KPACK_SUCCESS);
		assert_int_equal(rmdir(at("out/d")), 0);
		assert_int_equal(tree_write_finish(&w, &why) == KPACK_SUCCESS, staged);
		tree_write_end(&w);
	}
}

/* At the end of a run, what has the name of a directory may be one of root's. */
TEST(test_directories_that_were_made, setup, teardown)
{
	struct tree_write w;

	assert_int_equal(mkdir(at("private"), 0700), 0);
	tree_write_begin(&w, out, false);
	assert_int_equal(tree_write_root(&w, &why), KPACK_SUCCESS);
	assert_int_equal(tree_write_directory(&w, "d", at("in"), &why), KPACK_SUCCESS);
	assert_int_equal(rename(at("out/d"), at("was")), 0);
	assert_int_equal(rename(at("private"), at("out/d")), 0);
	assert_int_equal(tree_write_finish(&w, &why), KPACK_ERROR_IO_ERROR);
	assert_has(why.text, "another directory was put");
	assert_int_equal(stat_of("out/d").st_mode & 07777, 0700);
	assert_int_equal(rename(at("out/d"), at("private")), 0);
	assert_int_equal(rename(at("was"), at("out/d")), 0);
	assert_int_equal(tree_write_finish(&w, &why), KPACK_SUCCESS);
	assert_int_equal(stat_of("out/d").st_mode & 07777, 0755);
	tree_write_end(&w);
}
