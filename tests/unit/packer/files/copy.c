/* SPDX-License-Identifier: MIT */
/* Copies of files that were looked at before; written trees: hard links, and the attributes of directories. */
#include "packer/files/copy.h"
#include <errno.h>
#include "tests/unit/scratch.h"
#include "packer/files/below.h"

static char out[80];
static struct kpackx_error why;

static struct stat stat_of(const char *name)
{
	struct stat st;

	assert_ok(lstat(at(name), &st));
	return st;
}

static struct file_identity seen(const char *name)
{
	const struct stat st = stat_of(name);

	return file_identity_of(&st);
}

static void assert_text(const char *name, const char *text)
{
	assert_reads(open(name, O_RDONLY | O_NOFOLLOW), text);
}

static int setup(void **state)
{
	assert_ok(scratch_begin(state));
	assert_ok(below_root(top, NULL));
	assert_ok(chmod(top, 0777));
	make("in/", NULL);
	snprintf(out, sizeof(out), "%s", at("out"));
	return 0;
}

/* Make the file NAME with TEXT and an old time of modification; returns its identity. */
static struct file_identity write_old(const char *name, const char *text)
{
	const struct timespec times[2] = {{1000, 0}, {1000, 0}};

	write_text(name, text);
	assert_ok(utimensat(AT_FDCWD, at(name), times, 0));
	return seen(name);
}

/* Become an ordinary user, or root again, if root runs the test. */
static void become_user(bool ordinary)
{
	if (getuid() == 0)
		assert_ok(seteuid(ordinary ? 65534 : 0));
}

static void begin(struct tree_write *w, bool staged)
{
	tree_write_begin(w, out, staged);
	assert_ok(tree_write_root(w, &why));
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
	assert_io_error(copy_seen(from, id, at("copy"), &why));
	assert_has(why.text, "was changed meanwhile");
	assert_int_equal(access(at("copy"), F_OK), -1);
}

TEST(test_only_what_was_seen, setup, scratch_end)
{
	struct file_identity id = write_old("file", "seen");

	assert_ok(copy_seen(at("file"), &id, at("ok"), NULL));
	assert_text("ok", "seen");
	/* the same size and time, but another file */
	write_old("new", "fake");
	assert_ok(rename(at("new"), at("file")));
	assert_changed(at("file"), &id);
	/* the same file, with another content and its old time */
	id = seen("file");
	assert_ok(truncate(at("file"), 3));
	assert_ok(truncate(at("file"), 4));
	assert_ok(utimensat(AT_FDCWD, at("file"),
			    (struct timespec[2]){id.mtime, id.mtime}, 0));
	assert_changed(at("file"), &id);
	/* a link that leads elsewhere now */
	assert_ok(symlink("here", at("link")));
	id = seen("link");
	assert_ok(copy_seen(at("link"), &id, at("linked"), NULL));
	assert_ok(symlink("evil", at("new")));
	assert_ok(rename(at("new"), at("link")));
	assert_changed(at("link"), &id);
	/* what was a link is a file now, which is not read */
	write_old("new", "fake");
	assert_ok(rename(at("new"), at("link")));
	assert_changed(at("link"), &id);
}

/* As an ordinary user, whom a directory's mode keeps out. */
TEST(test_directories_are_closed_last, setup, scratch_end)
{
	const struct timespec times[2] = {{1000, 0}, {2000, 0}},
			      old[2] = {{1000, 0}, {77, 0}};
	struct tree_write w;

	make("in/a/", "in/a/b/", "in/a/b/file=text", NULL);
	assert_ok(chmod(at("in/a/b"), 0555));
	assert_ok(chmod(at("in/a"), 0555));
	assert_ok(utimensat(AT_FDCWD, at("in/a"), times, 0));
	assert_ok(utimensat(AT_FDCWD, at("in/a/b"), times, 0));
	assert_ok(chmod(at("in"), 0555));
	assert_ok(utimensat(AT_FDCWD, at("in"), old, 0));
	become_user(true);
	begin(&w, false);
	assert_ok(tree_write_directory(&w, "", at("in"), &why));
	assert_ok(tree_write_parents(&w, "a/b/x", at("in"), &why));
	/* a directory that the other tree lacks */
	assert_ok(tree_write_parents(&w, "new/x", at("in"), &why));
	assert_null(put_entry(&w, "in/a/b/file", "a/b/file"));
	write_text("out/a/b/old", "old");
	assert_ok(tree_write_remove(&w, "a/b/old", &why));
	assert_ok(tree_write_remove(&w, "a/b/old", &why));
	assert_ok(tree_write_finish(&w, &why));
	tree_write_end(&w);
	assert_int_equal(stat_of("out").st_mode & 07777, 0555);
	assert_int_equal(stat_of("out").st_mtim.tv_sec, 77);
	assert_ok(chmod(at("out"), 0700));
	become_user(false);
	assert_text("out/a/b/file", "text");
	assert_int_equal(access(at("out/a/b/old"), F_OK), -1);
	assert_int_equal(stat_of("out/a").st_mode & 07777, 0555);
	assert_int_equal(stat_of("out/a/b").st_mode & 07777, 0555);
	assert_int_equal(stat_of("out/a").st_mtim.tv_sec, 2000);
	assert_int_equal(stat_of("out/a/b").st_mtim.tv_sec, 2000);
	assert_ok(access(at("out/new"), F_OK));
}

TEST(test_hard_links, setup, scratch_end)
{
	struct file_identity id;
	struct tree_write w;

	make("in/1=text", "in/s>1", NULL);
	assert_ok(link("in/1", "in/2") | link("in/s", "in/t"));
	begin(&w, false);
	assert_null(put_entry(&w, "in/1", "1"));
	assert_null(put_entry(&w, "in/2", "2"));
	assert_null(put_entry(&w, "in/s", "s"));
	assert_null(put_entry(&w, "in/t", "t"));
	assert_int_equal(stat_of("out/1").st_ino, stat_of("out/2").st_ino);
	assert_int_equal(stat_of("out/s").st_ino, stat_of("out/t").st_ino);
	assert_true(S_ISLNK(stat_of("out/t").st_mode));
	/* a link to what has other bytes than the file that was seen */
	write_text("out/3", "other");
	assert_ok(utimensat(AT_FDCWD, at("out/3"),
			    (struct timespec[2]){{0}, stat_of("in/1").st_mtim}, 0));
	id = seen("in/1");
	assert_ok(tree_write_link(&w, "4", "3", NULL, &id, &why));
	assert_text("out/4", "other");
	/* it is another user's file now, or a link: only a copy of what was seen will do */
	assert_ok(unlink(at("out/3")));
	assert_ok(symlink("1", at("out/3")));
	assert_ok(tree_write_link(&w, "5", "3", at("in/1"), &id, &why));
	assert_text("out/5", "text");
	assert_io_error(tree_write_link(&w, "6", "3", NULL, &id, &why));
	assert_has(why.text, "was changed meanwhile");
	tree_write_end(&w);
}

/* Errors name the tree's file, or in a tree without a name the file that is copied. */
TEST(test_names_in_errors, setup, scratch_end)
{
	struct file_identity id;
	struct tree_write w;

	write_text("in/1", "text");
	id = seen("in/1");
	for (int staged = 0; staged < 2; staged++) {
		char want[300];

		begin(&w, staged);
		assert_int_not_equal(
			tree_write_file(&w, "no/1", at("in/1"), &id, NULL, &why),
			KPACK_SUCCESS);
		snprintf(want, sizeof(want),
			 "%s: ", staged ? at("in/1") : at("out/no/1"));
		assert_memory_equal(why.text, want, strlen(want));
		/* the caller may remove a directory of its own tree */
		assert_ok(tree_write_directory(&w, "d", at("in"), &why));
		assert_ok(rmdir(at("out/d")));
		assert_int_equal(tree_write_finish(&w, &why) == KPACK_SUCCESS, staged);
		tree_write_end(&w);
	}
}

/* At the end of a run, what has the name of a directory may be one of root's. */
TEST(test_directories_that_were_made, setup, scratch_end)
{
	struct tree_write w;

	assert_ok(mkdir(at("private"), 0700));
	begin(&w, false);
	assert_ok(tree_write_directory(&w, "d", at("in"), &why));
	assert_ok(rename(at("out/d"), at("was")));
	assert_ok(rename(at("private"), at("out/d")));
	assert_io_error(tree_write_finish(&w, &why));
	assert_has(why.text, "another directory was put");
	assert_int_equal(stat_of("out/d").st_mode & 07777, 0700);
	assert_ok(rename(at("out/d"), at("private")));
	assert_ok(rename(at("was"), at("out/d")));
	assert_ok(tree_write_finish(&w, &why));
	assert_int_equal(stat_of("out/d").st_mode & 07777, 0755);
	tree_write_end(&w);
}
