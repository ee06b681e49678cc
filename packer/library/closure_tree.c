/* SPDX-License-Identifier: MIT */
/*
 * One tree of plain files and entries.  The plain files of all roots come first, then the files that the
 * archives of all roots show, then links into these; so whatever comes first at a path is what programs get.
 */
#include "closure.h"
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/bounds.h"
#include "packer/archives/content.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "file_tree.h"
#include "rocfft.h"

/* What is known of a tree while it is opened. */
struct origin {
	const struct install_tree_of *of;
	char **sources; /* places of archives; on the heap */
	size_t n_sources, sources_cap;
	struct file_tree links; /* followed when all files are known */
};

/* Take over PATH. */
static void add_source(struct origin *from, char *path)
{
	xgrow(&from->sources, from->n_sources, &from->sources_cap,
	      sizeof(*from->sources));
	from->sources[from->n_sources++] = path;
}

/* --- merging ------------------------------------------------------------------------- */

static const char *place_of(const struct file_tree_item *item)
{
	return item->disk ? item->disk : kp_archive_path(item->archive);
}

/* Report A and B, which have the same path, if their bytes differ: who reads which is then chance. */
static kpack_error_t compare_items(struct install_tree *t, const struct file_tree_item *a,
				   const struct file_tree_item *b,
				   struct kpackx_error *why)
{
	const struct file_tree_item *both[] = {a, b};
	struct kpackx_error fault = {0};
	struct kp_hash hashes[2];
	bool same = a->size == b->size;
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < 2 && same && !err; i++) {
		const struct file_tree_item *item = both[i];

		err = item->disk ? content_hash_file(item->disk, 0, item->size,
						     &hashes[i], &fault)
				 : content_hash_entry(item->archive, item->entry,
						      &hashes[i], &fault);
		if (err)
			err = kp_fail_prefix(&fault, err, "%s", place_of(item));
	}
	if (err == KPACK_ERROR_OUT_OF_MEMORY)
		return kp_fail(why, err, "%s", fault.text);
	if (same && !err && kp_hash_is(&hashes[0], hashes[1].bytes))
		return KPACK_SUCCESS;
	t->n_faults++;
	if (err)
		report_why(a->path, &fault);
	else
		report_error(a->path, "other bytes in %s than in %s", place_of(a),
			     place_of(b));
	return KPACK_SUCCESS;
}

/*
 * Add MORE; if a path already exists, the existing file stays.  Who packs a tree compares with what
 * was packed before on his own: there a new file replaces it.
 */
static kpack_error_t join_files(struct install_tree *t, struct file_tree *more,
				struct kpackx_error *why)
{
	size_t file;

	file_tree_sort(more);
	for (size_t i = 0; i < more->count && !t->packing; i++)
		if (file_tree_find(&t->files, kp_span_str(more->items[i].path), &file))
			KP_TRY(compare_items(t, &t->files.items[file], &more->items[i],
					     why));
	for (size_t i = 0; i < more->count; i++)
		file_tree_add(&t->files, &more->items[i]);
	file_tree_sort(&t->files);
	return KPACK_SUCCESS;
}

/*
 * Add symbolic links to files that archives show.  They lead to nothing on the disk, but do so where
 * the archives are mounted over the tree.
 */
static kpack_error_t add_links(struct install_tree *t, const struct origin *from,
			       struct kpackx_error *why)
{
	KP_AUTO(file_tree) found = {0};

	for (size_t i = 0; i < from->links.count; i++) {
		const struct file_tree_item *link = &from->links.items[i];
		struct file_tree_item item;
		char to[PATH_MAX];
		ssize_t n = below_readlink(link->disk, to, sizeof(to));
		size_t file;

		if (n < 0 || (size_t)n >= sizeof(to) ||
		    !kernel_path_find(&t->files, link->path,
				      (struct kp_span){(uint8_t *)to, (size_t)n}, &file))
			continue;
		item = t->files.items[file];
		item.path = link->path;
		file_tree_add(&found, &item);
	}
	return join_files(t, &found, why);
}

/* --- roots --------------------------------------------------------------------------- */

/* Add the archives of the directory DIR, which is taken over. */
static void add_archives_of(struct origin *from, char *dir)
{
	struct kpackx_error ignored = {0};
	char **paths = NULL;
	size_t count = 0;

	if (below_archives_find(dir, &paths, &count, &ignored) || count == 0)
		free(dir);
	else
		add_source(from, dir);
	for (size_t i = 0; i < count; i++)
		free(paths[i]);
	free(paths);
}

static kpack_error_t add_root(struct install_tree *t, const char *root,
			      struct origin *from, struct kpackx_error *why)
{
	struct plain_files plain = {.links = from->links};
	struct stat st;
	kpack_error_t err;

	if (below_stat(root, &st) < 0)
		return below_fail(why, "cannot look at it");
	if (!S_ISDIR(st.st_mode)) {
		add_source(from, xstrdup(root));
		return KPACK_SUCCESS;
	}
	add_archives_of(from, xasprintf("%s/" KP_ARCHIVES_DIR, root));
	add_archives_of(from, xstrdup(root));
	plain_files_read(root, from->of->prefix, &plain);
	t->n_faults += plain.n_faults;
	from->links = plain.links;
	plain.links = (struct file_tree){0};
	for (size_t i = 0; i < plain.n_archive_dirs; i++)
		add_source(from, xstrdup(plain.archive_dirs[i]));
	err = join_files(t, &plain.files, why);
	plain_files_fini(&plain);
	return err;
}

/* --- files that archives show -------------------------------------------------------- */

/*
 * Add the files of a directory of the view, whose path is PATH and, below the root, a slash.  A view
 * limits the length and depth of its paths, so recursion is bounded.  The TOC at the root is no part
 * of the tree.
 */
static void add_directory(const struct install_tree *t, uint32_t dir, const char *path,
			  struct file_tree *to)
{
	const struct kp_view_dir *d = kp_view_dir(t->view, dir);

	for (uint32_t i = d->first; i < d->first + d->count; i++) {
		struct kp_view_name name = kp_view_name(t->view, i);
		bool is_sub = name.kind == KP_VIEW_DIR &&
			      (dir != 0 || !kp_span_is(name.text, KP_TOC_NAME));
		struct file_tree_item item = {0};
		struct kp_entry_info info;
		struct kp_meta meta;

		if (!is_sub && name.kind != KP_VIEW_PATH && name.kind != KP_VIEW_LEGACY)
			continue;
		item.path = xasprintf("%s%.*s%s", path, (int)name.text.size,
				      (const char *)name.text.data, is_sub ? "/" : "");
		if (is_sub) {
			add_directory(t, name.index, item.path, to);
		} else {
			item.archive = kp_view_entry(t->view, name.index, &item.entry);
			kp_archive_entry(item.archive, item.entry, &info);
			kp_archive_meta(item.archive, item.entry, &meta);
			item.size = info.size;
			item.mode = (mode_t)meta.mode & 07777;
			file_tree_add(to, &item);
		}
		free(item.path);
	}
}

static kpack_error_t add_archives(struct install_tree *t, struct origin *from,
				  struct kpackx_error *why)
{
	KP_AUTO(file_tree) shown = {0};
	size_t kept, counted;
	const char *const *texts;

	if (from->n_sources == 0)
		return KPACK_SUCCESS;
	archives_open(&t->archives, (int)from->n_sources, from->sources);
	t->n_faults += t->archives.failed;
	KP_TRY(kp_view_new(t->archives.items, t->archives.count, NULL, &t->view, why));
	texts = kp_view_conflicts(t->view, &kept, &counted);
	for (size_t i = 0; i < kept; i++)
		report_error(NULL, "%s", texts[i]);
	if (counted > kept)
		report_error(NULL, "and %zu more", counted - kept);
	t->n_faults += counted;
	add_directory(t, 0, "", &shown);
	return join_files(t, &shown, why);
}

/* --- libraries ------------------------------------------------------------------------- */

/* The library of SET that the metadata of an entry names; NULL: none. */
static const char *library_of_entry(const struct library_set *set,
				    const struct file_tree_item *item)
{
	KP_AUTO(file_names) names = {0};

	if (file_names_of_msgpack(kp_archive_meta_raw(item->archive, item->entry),
				  "library", &names, NULL) ||
	    names.count == 0)
		return NULL;
	for (size_t i = 0; i < set->count; i++)
		if (strcmp(names.items[0], set->items[i]->name) == 0)
			return set->items[i]->name;
	return NULL;
}

static void report_fault(void *arg, size_t file, const struct kpackx_error *why)
{
	const struct install_tree *t = arg;

	if (!t->packing || !t->files.items[file].disk)
		report_why(t->files.items[file].path, why);
}

/*
 * Entries that name a known library are trusted.  Libraries are asked about all other files, also
 * those that were packed with rules that are not given now.
 */
static kpack_error_t find_libraries(struct install_tree *t,
				    const struct install_tree_of *of,
				    struct kpackx_error *why)
{
	t->found = (struct library_found){&t->files,
					  xcalloc(t->files.count, sizeof(void *))};
	for (size_t i = 0; i < t->files.count; i++) {
		const struct file_tree_item *item = &t->files.items[i];
		const char *library =
			item->archive ? library_of_entry(of->libraries, item) : NULL;

		if (!library)
			continue;
		t->found.objects[i] = xcalloc(1, sizeof(**t->found.objects));
		t->found.objects[i]->library = library;
		t->found.objects[i]->role = "file";
		library_add_arch(t->found.objects[i], KP_ARCH_GENERIC);
	}
	KP_TRY(library_find_all(of->libraries, &t->files, report_fault, t, &t->found,
				&t->n_faults, why));
	for (size_t i = 0; i < t->files.count; i++)
		t->n_databases += t->found.objects[i] != NULL;
	return KPACK_SUCCESS;
}

kpack_error_t install_tree_open(const struct install_tree_of *of,
				struct install_tree *out, struct kpackx_error *why)
{
	struct origin from = {.of = of};
	kpack_error_t err = KPACK_SUCCESS;

	*out = (struct install_tree){.packing = of->packing};
	for (int i = 0; i < of->n_paths && !err; i++) {
		err = add_root(out, of->paths[i], &from, why);
		if (err)
			err = kp_fail_prefix(why, err, "%s", of->paths[i]);
	}
	if (!err)
		err = add_archives(out, &from, why);
	if (!err)
		err = add_links(out, &from, why);
	if (!err)
		err = find_libraries(out, of, why);
	file_tree_fini(&from.links);
	while (from.n_sources)
		free(from.sources[--from.n_sources]);
	free(from.sources);
	return err;
}

void install_tree_close(struct install_tree *tree)
{
	if (tree->found.objects)
		library_found_fini(&tree->found);
	file_tree_fini(&tree->files);
	kp_view_free(tree->view);
	archives_close(&tree->archives);
	*tree = (struct install_tree){0};
}
