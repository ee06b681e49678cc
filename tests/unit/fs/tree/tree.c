/* SPDX-License-Identifier: MIT */
#include "tests/unit/archive_builder.h"
#include "fs/tree/tree.h"
#include "tests/unit/unit.h"

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
	kp_view_free(view);
	kp_archive_close(archive);
	return 0;
}

static uint64_t id_of(struct tree_node node)
{
	return (node.is_dir ? kp_view_dir(view, node.index)->id
			    : kp_view_file(view, node.index)->id) &
	       TREE_LAST;
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

	for (size_t i = 0; i < COUNT(from); i++) {
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

		assert_true(node.ino == TREE_ROOT ||
			    (node.ino >= TREE_FIRST && node.ino >> 56 == 0));
		assert_true(tree_find(t, node.ino, &found));
		assert_int_equal(tree_position(t, found), i);
		assert_found_near(t, i);
	}
	assert_false(tree_find(t, 0, &found));
	assert_false(tree_find(t, TREE_ROOT + 1, &found));
}

TEST(numbers_are_the_ids_of_the_view)
{
	struct tree *t = numbered(NULL);

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

TEST(taken_numbers_are_passed_over)
{
	size_t asked = 0;
	struct tree_taken taken = {is_taken, &asked};
	struct tree *t = numbered(&taken);
	size_t moved = 0;

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

/* --- IDs that an archive was made for ------------------------------------------------ */

/* The kernel knows another node by each of FILES numbers. */
struct known {
	uint64_t first;
	size_t asked;
};

static bool is_known(void *user, uint64_t ino, const struct kp_view *v,
		     struct tree_node node)
{
	struct known *known = user;

	known->asked++;
	return ino - known->first < FILES;
}

/*
 * EACH files have the ID FIRST, as many the next one, and so on; the kernel knows the
 * numbers from FROM on.  The late files have the numbers behind these, in the order of
 * their IDs, and few numbers are tried.
 */
static void assert_late_files(uint64_t first, size_t each, uint64_t from)
{
	struct known known = {.first = from};
	struct tree_taken taken = {is_known, &known};
	uint64_t next = from + FILES;
	struct tree *t;

	for (uint32_t i = 0; i < FILES; i++)
		((struct kp_view_file *)kp_view_file(view, i))->id = first + i / each;
	t = numbered(&taken);
	for (uint32_t i = 0; i < FILES; i++) {
		struct tree_node node = tree_at(t, tree_size(t) - FILES + i);
		bool late = i % each || first < TREE_FIRST;

		assert_int_equal(node.ino, late ? next++ : first + i / each);
	}
	assert_found(t);
	/* each free number once, and each known one once */
	assert_in_range(known.asked, FILES, tree_size(t) + FILES);
	tree_free(t);
}

TEST(late_files_try_no_number_again)
{
	assert_late_files(1000, 1, TREE_FIRST);
	assert_late_files(1000, 2, TREE_FIRST);
	assert_late_files(UINT64_C(1) << 50, 2, (UINT64_C(1) << 50) + FILES / 2);
	assert_late_files(TREE_LAST - FILES / 2 + 1, 2, TREE_FIRST);
	assert_late_files(TREE_LAST, FILES, TREE_FIRST);
}

SUITE(begin, end);
