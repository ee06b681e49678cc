/* SPDX-License-Identifier: MIT */
/* What a path leads to: which file is replaced, and into which one root writes. */
#include "packer/files/below.h"
#include "packer/files/target.h"
#include <errno.h>
#include "tests/unit/scratch.h"

static int setup(void **state)
{
	assert_ok(scratch_begin(state));
	make("dir/", "dir/file=old", "link>dir/file", NULL);
	return 0;
}

static struct below_target open_target(const char *path)
{
	struct below_target t;

	assert_ok(below_target_open(&t, path));
	return t;
}

static bool is_trusted(const char *path)
{
	struct below_target t = open_target(path);
	bool yes = below_target_trusted(&t);

	below_target_close(&t);
	return yes;
}

/* Root is not led to other files, and writes into none that is not its own there. */
TEST(test_other_users, setup, scratch_end)
{
	struct below_target t;

	if (geteuid() != 0)
		skip();
	assert_ok(chown("dir/file", 1000, 1000));
	assert_true(is_trusted("dir/file"));
	assert_ok(chmod("dir", 01777));
	assert_false(is_trusted("dir/file"));
	assert_ok(chmod("dir", 0755));
	assert_ok(chown("dir", 1000, 1000));
	assert_false(is_trusted("link"));
	assert_ok(chown("dir/file", 0, 0));
	assert_true(is_trusted("link"));
	/* another user may have made the link to root's file */
	assert_ok(link("dir/file", "dir/hard"));
	assert_false(is_trusted("link"));
	assert_ok(chown(".", 1000, 1000));
	assert_int_equal(below_target_open(&t, "link"), -1);
	assert_int_equal(errno, ELOOP);
}

/*
 * The last: from here on "dir" is a root.  In it, links are followed by the same rule as outside
 * of one.
 */
TEST(test_in_a_root, setup, scratch_end)
{
	struct below_target t;

	assert_ok(symlink("file", "dir/inside"));
	assert_ok(below_root("dir", NULL));
	t = open_target("dir/inside");
	assert_string_equal(t.name, "file");
	below_target_close(&t);
	if (geteuid() != 0)
		return;
	assert_ok(chown("dir", 1000, 1000));
	assert_int_equal(below_target_open(&t, "dir/inside"), -1);
	assert_int_equal(errno, ELOOP);
}
