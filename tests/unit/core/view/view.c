/* SPDX-License-Identifier: MIT */
#include "core/view/view.h"
#include "tests/unit/view_builder.h"

/* Find the name at PATH; false if there is none. */
static bool find(const struct kp_view *v, const char *path, struct kp_view_name *out)
{
	uint32_t dir, name;

	if (!find_name(v, path, &name, &dir))
		return false;
	*out = kp_view_name(v, name);
	return true;
}

static const struct kp_view_file *file_at(const struct kp_view *v, const char *path)
{
	struct kp_view_name n;

	if (!find(v, path, &n) || n.kind == KP_VIEW_DIR)
		fail_msg("no file %s", path);
	return kp_view_file(v, n.index);
}

static void append(char *out, size_t cap, const char *text, size_t size)
{
	size_t used = strlen(out);

	if (used + size + 1 > cap)
		fail_msg("list too long");
	memcpy(out + used, text, size);
	out[used + size] = 0;
}

static void list_dir(const struct kp_view *v, uint32_t d, const char *path, char *out,
		     size_t cap)
{
	const struct kp_view_dir *dir = kp_view_dir(v, d);
	uint32_t subdirs = 0;

	assert_true(dir->count > 0 || strcmp(path, "toc/") == 0);
	for (uint32_t i = 0; i < dir->count; i++) {
		struct kp_view_name n = kp_view_name(v, dir->first + i);
		char child[600];
		uint32_t found;

		snprintf(child, sizeof(child), "%s%.*s%s", path, (int)n.text.size,
			 (const char *)n.text.data, n.kind == KP_VIEW_DIR ? "/" : "");
		if (i)
			assert_true(kp_span_cmp(kp_view_name(v, dir->first + i - 1).text,
						n.text) < 0);
		assert_true(kp_view_lookup(v, d, n.text, &found) &&
			    found == dir->first + i);
		if (n.kind == KP_VIEW_DIR) {
			subdirs++;
			assert_int_equal(kp_view_dir(v, n.index)->parent, d);
			assert_true(n.index > d);
			list_dir(v, n.index, child, out, cap);
			continue;
		}
		append(out, cap, child, strlen(child));
		append(out, cap, " ", 1);
	}
	assert_int_equal(dir->subdirs, subdirs);
}

/* All files of the view in order, each followed by a space. */
static const char *list(const struct kp_view *v)
{
	static char out[8192];

	out[0] = 0;
	list_dir(v, 0, "", out, sizeof(out));
	return out;
}

static size_t conflict_count(const struct kp_view *v)
{
	size_t kept, counted;

	(void)kp_view_conflicts(v, &kept, &counted);
	return counted;
}

/* --- names of one archive ----------------------------------------------------------- */

static const struct {
	const char *toc, *paths;
	size_t conflicts;
} cases[] = {
	{"{}", "", 0},
	{"{'lib/x.so#0': {'gfx1030': @0, 'gfx90a:xnack+': @1},'lib/x.so#1': "
	 "{'gfx90a:xnack+': @2}, 'lib/y': {'gfx9': {'ordinal': 0,'type': 'co'}}, 'z': "
	 "{'generic': {'ordinal': 0, 'type': 'dat'}}}",
	 "toc/lib/x.so/gfx1030.hsaco toc/lib/x.so/gfx90a:xnack+#1.hsaco "
	 "toc/lib/x.so/gfx90a:xnack+.hsaco toc/lib/y/gfx9.co toc/z/generic.dat ",
	 0},
	{"{'rocblas/gfx1100/k': {'ordinal': 0, 'type': 'co'}, "
	 "'hipblaslt/gfx1100/gemm_kernel_1':{'type': 'co', 'ordinal': 1, 'metadata': "
	 "{'M': 4096}}, 'aotriton/gfx1100/fwd': {'gfx1100': @2}, "
	 "'fft/gfx1100/1024/single/kernel': @3}",
	 "aotriton/kernels/gfx1100/fwd.hsaco "
	 "hipblaslt/library/TensileLibrary/gfx1100/gemm_kernel_1.co "
	 "rocblas/library/gfx1100/k.co toc/aotriton/gfx1100/fwd/gfx1100.hsaco "
	 "toc/fft/gfx1100/1024/single/kernel/gfx1100.hsaco "
	 "toc/hipblaslt/gfx1100/gemm_kernel_1/gfx1100.co "
	 "toc/rocblas/gfx1100/k/gfx1100.co ",
	 0},
	/* an entry with a path does not get a legacy path */
	{"{'rocblas/gfx1100/k': {'ordinal': 0, 'metadata': {'path': 'p'}}}",
	 "p toc/rocblas/gfx1100/k/gfx1100.hsaco ", 0},
	/* an empty path is refused, and is not replaced by the paper's path */
	{"{'aotriton/a/k': {'a': {'ordinal': 0, 'metadata': {'path': ''}}}}",
	 "toc/aotriton/a/k/a.hsaco ", 1},
	/* architectures and types that are not valid file names */
	{"{'k': {'a/b': @0, '.': {'ordinal': 0, 'type': '..'}, '..': {'ordinal': "
	 "0,'type': '/x'}, 'c': @0}}",
	 "toc/k/.... toc/k/c.hsaco ", 2},
	/* a directory wins over a file, whichever comes first */
	{"{'a': {'x': @0}, 'a/x.hsaco': {'y': @1}}", "toc/a/x.hsaco/y.hsaco ", 1},
	{"{'k': {'a': {'ordinal': 0, 'metadata': {'path': 'p/q'}}, 'b': {'ordinal': 1, "
	 "'metadata':{'path': 'p'}}, 'c': {'ordinal': 2, 'metadata': {'path': "
	 "'p/q/r'}}}}",
	 "p/q/r toc/k/a.hsaco toc/k/b.hsaco toc/k/c.hsaco ", 2},
	/* index 0 is the same name with and without "#0" */
	{"{'a': {'x': @0}, 'a#0': {'x': @0}}", "toc/a/x.hsaco ", 0},
	{"{'a': {'x': @0}, 'a#0': {'x': @1}}", "toc/a/x.hsaco ", 1},
	/*
	 * names that differ only in their index, and other names that sort between them
	 */
	{"{'a#10': {'x': @0}, 'a#2': {'x': @1}, 'a': {'x': @2,'x#2': @1}}",
	 "toc/a/x#10.hsaco toc/a/x#2.hsaco toc/a/x.hsaco ", 0},
};

TEST(entries_have_paths)
{
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct kpack_archive *a = with_toc(cases[i].toc);
		struct kp_view *v = new_view(&a, 1, NULL);

		if (strcmp(list(v), cases[i].paths) != 0)
			fail_msg("%s\ngives %s\nnot   %s", cases[i].toc, list(v),
				 cases[i].paths);
		if (conflict_count(v) != cases[i].conflicts)
			fail_msg("%s: %zu conflicts", cases[i].toc, conflict_count(v));
		kp_view_free(v);
		kp_archive_close(a);
	}
	kp_view_free(NULL);
}

/* --- hard links --------------------------------------------------------------------- */

TEST(names_of_one_content_are_links)
{
	struct kpack_archive *a =
		with_toc("{'a#0': {'x': @0, 'y': {'ordinal': 0, 'metadata': {'path': "
			 "'p/a'}}},'b': {'x': @0, 'y': @1},'c': {'x': @2, 'y': @3, 'z': "
			 "@3},'rocblas/x/k': {'x': @1}}");
	struct kp_view *v = new_view(&a, 1, NULL);

	assert_ptr_equal(file_at(v, "toc/a/x.hsaco"), file_at(v, "p/a"));
	assert_ptr_equal(file_at(v, "toc/a/x.hsaco"), file_at(v, "toc/b/x.hsaco"));
	assert_int_equal(file_at(v, "p/a")->nlink, 4);
	assert_int_equal(file_at(v, "toc/b/y.hsaco")->nlink, 3);
	assert_ptr_equal(file_at(v, "rocblas/library/x/k.co"),
			 file_at(v, "toc/b/y.hsaco"));
	assert_ptr_not_equal(file_at(v, "toc/c/x.hsaco"), file_at(v, "toc/c/y.hsaco"));
	assert_int_equal(file_at(v, "toc/c/x.hsaco")->nlink, 1);
	assert_int_equal(file_at(v, "toc/c/y.hsaco")->nlink, 2);
	assert_int_equal(kp_view_file_count(v), 4);
	kp_view_free(v);
	kp_archive_close(a);
}

TEST(directories_are_found_by_path)
{
	static const char *const same[] = {"lib/x", "/lib/x", "lib//x/", "///lib///x///"};
	static const char *const none[] = {"lib/x/n",  "lib/z", "x",
					   "lib/x/n/", ".",     "lib/../lib"};
	struct kpack_archive *a = with_toc(
		"{'n': {'generic': {'ordinal': 2, 'metadata': {'path': 'lib/x/n'}}}}");
	struct kp_view *v = new_view(&a, 1, NULL);
	struct kp_view_name name;
	uint32_t dir;

	assert_true(find(v, "lib/x", &name));
	for (size_t i = 0; i < COUNT(same); i++) {
		assert_true(kp_view_find_dir(v, kp_span_str(same[i]), &dir));
		assert_int_equal(dir, name.index);
	}
	for (size_t i = 0; i < COUNT(none); i++)
		assert_false(kp_view_find_dir(v, kp_span_str(none[i]), &dir));
	assert_true(kp_view_find_dir(v, kp_span_str(""), &dir) && dir == 0);
	assert_true(kp_view_find_dir(v, kp_span_str("//"), &dir) && dir == 0);
	assert_true(kp_view_find_dir(v, kp_span_str("toc/n"), &dir) && dir != 0);
	kp_view_free(v);
	kp_archive_close(a);
}

TEST(names_are_hidden)
{
	struct kpack_archive *a = with_toc(
		"{'n': {'generic': {'ordinal': 2, 'metadata': {'path': 'lib/a'}}}, 'm': "
		"{'generic': {'ordinal': 1, 'metadata': {'path': 'lib/b'}}}}");
	struct kp_view *v = new_view(&a, 1, NULL);
	struct kp_view_name lib;

	assert_true(kp_view_hide(v, 0, kp_span_str("toc")));
	assert_false(kp_view_hide(v, 0, kp_span_str("toc")));
	assert_true(find(v, "lib", &lib) && kp_view_hide(v, lib.index, kp_span_str("a")));
	assert_false(kp_view_hide(v, lib.index, kp_span_str("c")));
	assert_string_equal(list(v), "lib/b ");
	kp_view_free(v);
	kp_archive_close(a);
}

/* --- identity ----------------------------------------------------------------------- */

static uint64_t dir_id(const struct kp_view *v, const char *path)
{
	struct kp_view_name n;

	assert_true(find(v, path, &n) && n.kind == KP_VIEW_DIR);
	return kp_view_dir(v, n.index)->id;
}

TEST(ids_stay_when_a_view_is_built_again)
{
	static const char toc[] = "{'lib/a#0': {'x': @0, 'y': @1}, 'b': {'x': "
				  "{'ordinal': 2, 'metadata': {'path': 'p/q'}}}}";
	struct kpack_archive *archives[] = {
		with_toc(toc),
		with_toc(toc),
		with_toc("{'0': {'x': @3}}"),
		with_toc("{'lib/a#0': {'x': @1, 'y': @1}, 'b': {'x': {'ordinal': 2, "
			 "'metadata': {'path': 'p/q'}}}}"),
	};
	struct kp_view *one = new_view(archives, 1, NULL);
	struct kp_view *again = new_view(archives + 1, 1, NULL);
	struct kp_view *more =
		new_view((struct kpack_archive *[]){archives[2], archives[1]}, 2, NULL);
	struct kp_view *other = new_view(archives + 3, 1, NULL);
	static const char *const files[] = {"toc/lib/a/x.hsaco", "toc/lib/a/y.hsaco",
					    "p/q"};

	for (size_t i = 0; i < COUNT(files); i++) {
		uint64_t id = file_at(one, files[i])->id;

		assert_int_equal(file_at(again, files[i])->id, id);
		assert_int_equal(file_at(more, files[i])->id, id);
		assert_int_not_equal(file_at(other, files[i])->id, id);
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(file_at(one, files[k])->id, id);
	}
	assert_int_equal(dir_id(one, "toc/lib"), dir_id(other, "toc/lib"));
	assert_int_equal(dir_id(one, "toc/lib"), dir_id(more, "toc/lib"));
	assert_int_not_equal(dir_id(one, "toc/lib"), dir_id(one, "p"));
	kp_view_free(one);
	kp_view_free(again);
	kp_view_free(more);
	kp_view_free(other);
	for (size_t i = 0; i < COUNT(archives); i++)
		kp_archive_close(archives[i]);
}

/* An uncompressed archive of another build can have an identical table. */
TEST(archives_of_another_time_are_others)
{
	static const char toc[] = "{'a': {'x': @0}}";
	struct kpack_archive *archives[3] = {with_toc(toc), with_toc(toc)};
	struct kp_view *v;
	uint64_t id;

	ab_mtime++;
	archives[2] = with_toc(toc);
	ab_mtime--;
	v = new_view(archives, 2, NULL);
	id = file_at(v, "toc/a/x.hsaco")->id;
	assert_int_equal(conflict_count(v), 0);
	kp_view_free(v);
	v = new_view(archives + 1, 2, NULL);
	assert_int_equal(conflict_count(v), 1);
	assert_int_equal(file_at(v, "toc/a/x.hsaco")->id, id);
	kp_view_free(v);
	v = new_view(archives + 2, 1, NULL);
	assert_int_not_equal(file_at(v, "toc/a/x.hsaco")->id, id);
	kp_view_free(v);
	for (size_t i = 0; i < COUNT(archives); i++)
		kp_archive_close(archives[i]);
}
