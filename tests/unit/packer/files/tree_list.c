/* SPDX-License-Identifier: MIT */
/* The list of a tree: its order, what is skipped, and what cannot be read. */
#include "packer/files/tree_list.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/unit/unit.h"

/* List ROOT as a text: "+DIR", "-DIR" at its end, names of others, "!NAME:ERRNO". */
static void list_tree(const char *root, const char *skip, char *text)
{
	struct tree_list *list = tree_list_open(root);
	struct tree_item item;

	*text = '\0';
	while (tree_list_next(list, &item)) {
		static const char *const marks[] = {"+", "-", "", "!"};

		sprintf(text + strlen(text), "%s%s%d ", marks[item.kind], item.rest,
			item.level);
		if (item.kind == TREE_FAULT)
			sprintf(text + strlen(text), "(%d) ", item.error);
		assert_string_equal(item.path + strlen(item.path) - strlen(item.name),
				    item.name);
		if (item.kind == TREE_DIR && strcmp(item.name, skip) == 0)
			tree_list_skip(list);
	}
	assert_false(tree_list_next(list, &item));
	tree_list_close(list);
}

TEST(test_list)
{
	char dir[] = "/tmp/kpack-test-list-XXXXXX", text[400], command[300], slashes[60];

	assert_non_null(mkdtemp(dir));
	snprintf(command, sizeof(command),
		 "cd %s && mkdir -p b/c b/d a-x a && touch a/1 b/c/2 b/e z B && "
		 "ln -s b l && mkfifo f",
		 dir);
	assert_int_equal(system(command), 0);
	list_tree(dir, "", text);
	assert_string_equal(text, "+0 B1 +a1 a/12 -a1 +a-x1 -a-x1 +b1 +b/c2 b/c/23 -b/c2 "
				  "+b/d2 -b/d2 b/e2 -b1 f1 l1 z1 -0 ");
	list_tree(dir, "b", text);
	assert_string_equal(text, "+0 B1 +a1 a/12 -a1 +a-x1 -a-x1 +b1 -b1 f1 l1 z1 -0 ");
	/* of the root alone a link is followed */
	snprintf(slashes, sizeof(slashes), "%s/l//", dir);
	list_tree(slashes, "", text);
	assert_string_equal(text, "+0 +c1 c/22 -c1 +d1 -d1 e1 -0 ");
	snprintf(slashes, sizeof(slashes), "%s/z", dir);
	list_tree(slashes, "", text);
	assert_string_equal(text, "0 ");
	snprintf(slashes, sizeof(slashes), "%s/none", dir);
	list_tree(slashes, "", text);
	assert_string_equal(text, "!0 (2) ");
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

/* A directory that becomes a link before it is entered is a fault, and is not followed. */
TEST(test_exchanged)
{
	char dir[] = "/tmp/kpack-test-list-XXXXXX", path[100], other[100], command[100];
	struct tree_list *list;
	struct tree_item item;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/d", dir);
	snprintf(other, sizeof(other), "%s/e", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	list = tree_list_open(dir);
	assert_true(tree_list_next(list, &item));
	assert_true(tree_list_next(list, &item));
	assert_int_equal(item.kind, TREE_DIR);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink("/etc", path), 0);
	assert_true(tree_list_next(list, &item));
	assert_int_equal(item.kind, TREE_FAULT);
	assert_true(item.error == ELOOP || item.error == ENOTDIR);
	assert_string_equal(item.rest, "d");
	assert_true(tree_list_next(list, &item));
	assert_int_equal(item.kind, TREE_DIR_END);
	assert_int_equal(item.level, 0);
	assert_false(tree_list_next(list, &item));
	tree_list_close(list);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

/* Whether the file PATH of the tree DIR is guarded. */
static bool is_guarded(const char *dir, const char *path)
{
	struct tree_list *list = tree_list_open(dir);
	struct tree_item item;
	bool found = false, guarded = false;

	while (tree_list_next(list, &item))
		if (item.kind == TREE_OTHER && strcmp(item.rest, path) == 0) {
			found = true;
			guarded = item.guarded;
		}
	tree_list_close(list);
	assert_true(found);
	return guarded;
}

/* A file is guarded in directories that only root may write into, from the root on. */
/* A slash after the name of a file is no part of it. */
TEST(test_slash)
{
	char dir[] = "/tmp/kpack-test-tree_list-XXXXXX", path[64];
	struct tree_list *list;
	struct tree_item item;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	close(open(path, O_WRONLY | O_CREAT, 0600));
	strcat(path, "/");
	list = tree_list_open(path);
	assert_true(tree_list_next(list, &item));
	assert_int_equal(item.kind, TREE_FAULT);
	assert_int_equal(item.error, ENOTDIR);
	tree_list_close(list);
	snprintf(path, sizeof(path), "%s/", dir);
	list = tree_list_open(path);
	assert_true(tree_list_next(list, &item));
	assert_int_equal(item.kind, TREE_DIR);
	tree_list_close(list);
	snprintf(path, sizeof(path), "rm -rf %s", dir);
	assert_int_equal(system(path), 0);
}

TEST(test_guarded)
{
	char dir[] = "/tmp/kpack-test-list-XXXXXX", path[100], command[200];

	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(dir));
	snprintf(command, sizeof(command), "mkdir -p %s/a/b && touch %s/f %s/a/b/f", dir,
		 dir, dir);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof(path), "%s/a", dir);
	assert_true(is_guarded(dir, "f"));
	assert_true(is_guarded(dir, "a/b/f"));
	assert_int_equal(chmod(path, 0775), 0);
	assert_true(is_guarded(dir, "f"));
	assert_false(is_guarded(dir, "a/b/f"));
	assert_int_equal(chmod(path, 01777), 0);
	assert_false(is_guarded(dir, "a/b/f"));
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(chown(path, 12345, 0), 0);
	assert_false(is_guarded(dir, "a/b/f"));
	assert_int_equal(chown(path, 0, 0), 0);
	assert_int_equal(chmod(dir, 0707), 0);
	assert_false(is_guarded(dir, "f"));
	assert_false(is_guarded(dir, "a/b/f"));
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}
