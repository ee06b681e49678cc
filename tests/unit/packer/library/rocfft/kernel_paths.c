/* SPDX-License-Identifier: MIT */
/* The file of a tree that a kernel path names. */
#include "packer/library/rocfft/kernel_paths.h"
#include <stdlib.h>
#include "tests/unit/unit.h"
#include "core/base/bounds.h"

static const char *const files[] = {
	"lib/rocfft/kernels.db",
	"lib/rocfft/k/a.co",
	"lib/rocfft/b.co",
	"k/a.co",
	"k/c.co",
	"etc/passwd",
};

static const struct {
	const char *path, *file; /* NULL: no file */
} paths[] = {
	{"k/a.co", "lib/rocfft/k/a.co"}, /* the table's own directory comes first */
	{"k/c.co", "k/c.co"},
	{"b.co", "lib/rocfft/b.co"},
	{"./k//./a.co", "lib/rocfft/k/a.co"},
	{"../rocfft/b.co", "lib/rocfft/b.co"},
	{"../../k/a.co", "k/a.co"},
	{"../../../k/a.co", NULL},
	{"../../../../etc/passwd", NULL},
	{"k/../../../k/c.co", "k/c.co"},
	{"/opt/rocm/lib/rocfft/b.co", "lib/rocfft/b.co"},
	{"/build/fft/k/a.co", "lib/rocfft/k/a.co"},
	{"/build/fft/b.co", "lib/rocfft/b.co"},
	{"/build/x/../lib/rocfft/k/../b.co", "lib/rocfft/b.co"},
	{"/etc/passwd", "etc/passwd"},
	{"/../etc/passwd", NULL},
	{"lib/rocfft", NULL},
	{"b.co/", "lib/rocfft/b.co"},
	{"/", NULL},
	{".", NULL},
	{"..", NULL},
	{"", NULL},
	{"B.co", NULL},
};

static struct file_tree tree_of_files(void)
{
	struct file_tree tree = {0};

	for (size_t i = 0; i < COUNT(files); i++) {
		struct file_tree_item item = {.path = (char *)files[i],
					      .disk = (char *)"x"};

		file_tree_add(&tree, &item);
	}
	file_tree_sort(&tree);
	return tree;
}

TEST(paths_are_found_in_the_tree_alone)
{
	struct file_tree tree = tree_of_files();
	size_t file;

	for (size_t i = 0; i < COUNT(paths); i++) {
		bool found = kernel_path_find(&tree, files[0], kp_span_str(paths[i].path),
					      &file);

		if (found != (paths[i].file != NULL))
			fail_msg("'%s': %s", paths[i].path, found ? "found" : "missing");
		if (found)
			assert_string_equal(tree.items[file].path, paths[i].file);
	}
	file_tree_fini(&tree);
}

TEST(a_database_at_the_root_has_the_root)
{
	struct file_tree tree = tree_of_files();
	size_t file;

	assert_true(kernel_path_find(&tree, "x.db", kp_span_str("k/a.co"), &file));
	assert_string_equal(tree.items[file].path, "k/a.co");
	assert_false(kernel_path_find(&tree, "x.db", kp_span_str("../k/a.co"), &file));
	file_tree_fini(&tree);
}

TEST(long_and_deep_paths_are_not_there)
{
	struct file_tree tree = tree_of_files();
	char text[3 * KP_NAME_MAX];
	size_t file;

	memset(text, 'a', sizeof(text));
	text[0] = '/';
	assert_false(kernel_path_find(
		&tree, files[0], (struct kp_span){(uint8_t *)text, sizeof(text)}, &file));
	assert_false(kernel_path_find(
		&tree, files[0], (struct kp_span){(uint8_t *)text, KP_NAME_MAX}, &file));
	for (size_t i = 0; i < KP_NAME_MAX; i += 2)
		text[i] = '/';
	assert_false(kernel_path_find(
		&tree, files[0], (struct kp_span){(uint8_t *)text, KP_NAME_MAX}, &file));
	assert_false(kernel_path_find(
		&tree, files[0], (struct kp_span){(const uint8_t *)"b.co\0x", 6}, &file));
	file_tree_fini(&tree);
}
