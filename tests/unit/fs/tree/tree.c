/* SPDX-License-Identifier: MIT */
#include "tests/unit/archive_builder.h"
#include "fs/tree/tree.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { FILES = 300 };

static struct kpack_archive *archive;
static struct kp_view *view;

/* FILES files, each in its own directory below toc/. */
static int begin(void **state)
{
	struct ab a = ab_new(64);
	struct kpackx_error why;
	char toc[64 * FILES], *at = toc;
	char blobs[40 * FILES], *end = blobs;

	(void)state;
	for (int i = 0; i < FILES; i++) {
		at += sprintf(at, "'k%03d': {'x': {'ordinal': %d}},", i, i);
		end += sprintf(end, "{'offset': 64, 'size': 1},");
	}
	ab_put(&a, "1", 1);
	ab_toc(&a, "{'toc': {%s}, 'compression_scheme': 'none', 'blobs': [%s]}", toc,
	       blobs);
	assert_int_equal(ab_open(&a, &archive, &why), KPACK_SUCCESS);
	assert_int_equal(kp_view_new(&archive, 1, NULL, &view, &why), KPACK_SUCCESS);
	ab_free(&a);
	return 0;
}

static int end(void **state)
{
	(void)state;
	kp_view_free(view);
	kp_archive_close(archive);
	return 0;
}

static uint64_t id_of(struct tree_node node)
{
	return node.is_dir ? kp_view_dir(view, node.index)->id
			   : kp_view_file(view, node.index)->id;
}

static struct tree *numbered(const struct tree_taken *taken)
{
	struct tree_options options = {.uid = (uid_t)-1, .gid = (gid_t)-1};
	struct tree *t = NULL;
	struct kpackx_error why;

	assert_int_equal(tree_new(view, &options, taken, &t, &why), KPACK_SUCCESS);
	return t;
}

/* The position from which a search starts decides nothing but where the next one starts. */
static void assert_found_near(const struct tree *t, uint32_t position)
{
	const uint32_t from[] = {position, 0, tree_size(t) - 1, tree_size(t), UINT32_MAX};
	struct tree_node node = tree_at(t, position), found;

	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
		uint32_t near = from[i];

		assert_true(tree_find_near(t, node.ino, &near, &found));
		assert_int_equal(tree_position(t, found), position);
		assert_int_equal(near, position + 1);
		near = from[i];
		assert_false(tree_find_near(t, TREE_ROOT + 1, &near, &found));
		assert_int_equal(near, from[i]);
	}
}

static void assert_found(const struct tree *t)
{
	struct tree_node found;

	for (uint32_t i = 0; i < tree_size(t); i++) {
		struct tree_node node = tree_at(t, i);

		assert_true(node.ino == TREE_ROOT || node.ino >= TREE_FIRST);
		assert_true(tree_find(t, node.ino, &found));
		assert_int_equal(tree_position(t, found), i);
		assert_found_near(t, i);
	}
	assert_false(tree_find(t, 0, &found));
	assert_false(tree_find(t, TREE_ROOT + 1, &found));
}

static void numbers_are_the_ids_of_the_view(void **state)
{
	struct tree *t = numbered(NULL);

	(void)state;
	assert_int_equal(tree_size(t), 2 + FILES + FILES);
	assert_found(t);
	for (uint32_t i = 1; i < tree_size(t); i++)
		assert_int_equal(tree_at(t, i).ino, id_of(tree_at(t, i)));
	tree_free(t);
}

/* Every third number and its successor are taken. */
static bool is_taken(void *user, uint64_t ino, const struct kp_view *v,
		     struct tree_node node)
{
	uint64_t id = id_of(node);

	assert_ptr_equal(v, view);
	++*(size_t *)user;
	return id % 3 == 0 && ino - id < 2;
}

static void taken_numbers_are_passed_over(void **state)
{
	size_t asked = 0;
	struct tree_taken taken = {is_taken, &asked};
	struct tree *t = numbered(&taken);
	size_t moved = 0;

	(void)state;
	assert_found(t);
	for (uint32_t i = 1; i < tree_size(t); i++) {
		struct tree_node node = tree_at(t, i);
		uint64_t id = id_of(node);

		assert_int_equal(node.ino, id % 3 ? id : id + 2);
		moved += node.ino != id;
	}
	assert_in_range(moved, FILES / 3, FILES);
	assert_int_equal(asked, tree_size(t) - 1 + 2 * moved);
	tree_free(t);
}

/* Every number is taken by another name. */
static bool is_own(void *user, uint64_t ino, const struct kp_view *v,
		   struct tree_node node)
{
	(void)user;
	(void)v;
	return ino == id_of(node);
}

static void all_may_be_moved(void **state)
{
	struct tree_taken taken = {is_own, NULL};
	struct tree *t = numbered(&taken);

	(void)state;
	assert_found(t);
	for (uint32_t i = 1; i < tree_size(t); i++)
		assert_int_equal(tree_at(t, i).ino, id_of(tree_at(t, i)) + 1);
	tree_free(t);
}

int main(void)
{
	const struct CMUnitTest tree[] = {
		cmocka_unit_test(numbers_are_the_ids_of_the_view),
		cmocka_unit_test(taken_numbers_are_passed_over),
		cmocka_unit_test(all_may_be_moved),
	};

	return cmocka_run_group_tests(tree, begin, end);
}
