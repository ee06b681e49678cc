/* SPDX-License-Identifier: MIT */
#include "closure_tree.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/archives/content.h"
#include "rocfft.h"
#include "core/base/bounds.h"
#include "packer/cli/xalloc.h"
#include "core/base/msgpack_read.h"
#include "packer/files/below.h"
#include "packer/files/plain_files.h"
#include "packer/cli/report.h"
#include "core/archive/naming.h"
#include "core/archive/find.h"

/* Places of archives: paths on the heap. */
struct sources {
	char **items;
	size_t count, cap;
};

/* Take over PATH. */
static void add_source(struct sources *s, char *path)
{
	xgrow(&s->items, s->count, &s->cap, sizeof(*s->items));
	s->items[s->count++] = path;
}

static void sources_fini(struct sources *s)
{
	while (s->count)
		free(s->items[--s->count]);
	free(s->items);
}

/* --- merging ------------------------------------------------------------------------- */

static const char *place_of(const struct file_tree_item *item)
{
	return item->disk ? item->disk : kp_archive_path(item->archive);
}

static kpack_error_t hash_item(const struct file_tree_item *item, struct kp_hash *out,
			       struct kpackx_error *why)
{
	kpack_error_t err =
		item->disk ? content_hash_file(item->disk, 0, item->size, out, why)
			   : content_hash_entry(item->archive, item->entry, out, why);

	return err ? kp_fail_prefix(why, err, "%s", place_of(item)) : KPACK_SUCCESS;
}

/* Report A and B, which have the same path, if their bytes differ. */
static kpack_error_t compare_items(struct install_tree *t, const struct file_tree_item *a,
				   const struct file_tree_item *b,
				   struct kpackx_error *why)
{
	struct kpackx_error fault = {0};
	struct kp_hash x, y;
	bool same = a->size == b->size;
	kpack_error_t err = KPACK_SUCCESS;

	if (same)
		err = hash_item(a, &x, &fault);
	if (same && !err)
		err = hash_item(b, &y, &fault);
	if (err == KPACK_ERROR_OUT_OF_MEMORY)
		return kp_fail(why, err, "%s", fault.text);
	if (same && !err && kp_hash_is(&x, y.bytes))
		return KPACK_SUCCESS;
	t->n_faults++;
	if (err)
		report_why(a->path, &fault);
	else
		report_error(a->path, "other bytes in %s than in %s", place_of(a),
			     place_of(b));
	return KPACK_SUCCESS;
}

/* Add MORE; if a path already exists, the existing file stays. */
static kpack_error_t join_files(struct install_tree *t, const struct install_tree_of *of,
				struct file_tree *more, struct kpackx_error *why)
{
	size_t file;

	file_tree_sort(more);
	for (size_t i = 0; i < more->count && !of->packing; i++)
		if (file_tree_find(&t->files, kp_span_str(more->items[i].path), &file))
			KP_TRY(compare_items(t, &t->files.items[file], &more->items[i],
					     why));
	for (size_t i = 0; i < more->count; i++)
		file_tree_add(&t->files, &more->items[i]);
	file_tree_sort(&t->files);
	return KPACK_SUCCESS;
}

/* The origin of the files of a tree that is being opened. */
struct origin {
	const struct install_tree_of *of;
	struct sources sources;
	struct file_tree links; /* followed when all files are known */
};

static kpack_error_t add_files(struct install_tree *t, const char *root,
			       struct origin *from, struct kpackx_error *why)
{
	struct plain_files plain = {.links = from->links};
	kpack_error_t err;

	plain_files_read(root, from->of->prefix, &plain);
	t->n_faults += plain.n_faults;
	from->links = plain.links;
	plain.links = (struct file_tree){0};
	for (size_t i = 0; i < plain.n_archive_dirs; i++)
		add_source(&from->sources, xstrdup(plain.archive_dirs[i]));
	err = join_files(t, from->of, &plain.files, why);
	plain_files_fini(&plain);
	return err;
}

/* Read the target of LINK, relative to its directory; false: not a link, or too long. */
static bool read_target(const struct file_tree_item *link, char *to, size_t size)
{
	ssize_t n = below_readlink(link->disk, to, size);

	if (n < 0 || (size_t)n >= size)
		return false;
	to[n] = '\0';
	return true;
}

/* Add symbolic links to files that archives show. */
static kpack_error_t add_links(struct install_tree *t, const struct origin *from,
			       struct kpackx_error *why)
{
	const struct file_tree *links = &from->links;
	struct file_tree found = {0};
	kpack_error_t err;

	for (size_t i = 0; i < links->count; i++) {
		const struct file_tree_item *link = &links->items[i];
		struct file_tree_item item;
		char to[PATH_MAX];
		size_t file;

		if (!read_target(link, to, sizeof(to)) ||
		    !kernel_path_find(&t->files, link->path, kp_span_str(to), &file))
			continue;
		item = t->files.items[file];
		item.path = link->path;
		file_tree_add(&found, &item);
	}
	err = join_files(t, from->of, &found, why);
	file_tree_fini(&found);
	return err;
}

/* --- places of archives -------------------------------------------------------------- */

static bool has_archives(const char *dir)
{
	struct kpackx_error ignored = {0};
	char **paths = NULL;
	size_t count = 0;

	if (below_archives_find(dir, &paths, &count, &ignored))
		return false;
	for (size_t i = 0; i < count; i++)
		free(paths[i]);
	free(paths);
	return count > 0;
}

static kpack_error_t add_root(struct install_tree *t, const char *root,
			      struct origin *from, struct kpackx_error *why)
{
	struct stat st;
	char *dir;

	if (below_stat(root, &st) < 0)
		return below_fail(why, "cannot look at it");
	if (!S_ISDIR(st.st_mode)) {
		add_source(&from->sources, xstrdup(root));
		return KPACK_SUCCESS;
	}
	dir = xasprintf("%s/" KP_ARCHIVES_DIR, root);
	if (has_archives(dir))
		add_source(&from->sources, dir);
	else
		free(dir);
	if (has_archives(root))
		add_source(&from->sources, xstrdup(root));
	return add_files(t, root, from, why);
}

/* --- files that archives show -------------------------------------------------------- */

/* A path in the view, being built. */
struct view_path {
	char text[KP_NAME_MAX + 1];
	size_t size;
};

static void add_entry(const struct install_tree *t, const char *path, uint32_t file,
		      struct file_tree *to)
{
	struct file_tree_item item = {.path = (char *)path};
	struct kp_entry_info info;
	struct kp_meta meta;

	item.archive = kp_view_entry(t->view, file, &item.entry);
	kp_archive_entry(item.archive, item.entry, &info);
	kp_archive_meta(item.archive, item.entry, &meta);
	item.size = info.size;
	item.mode = (mode_t)meta.mode & 07777;
	file_tree_add(to, &item);
}

/* Whether NAME in DIR leads to files of the tree: the TOC at the root does not. */
static bool is_in_tree(uint32_t dir, const struct kp_view_name *name)
{
	if (name->kind == KP_VIEW_DIR)
		return dir != 0 || !kp_span_is(name->text, KP_TOC_NAME);
	return name->kind == KP_VIEW_PATH || name->kind == KP_VIEW_LEGACY;
}

static bool append_name(struct view_path *path, struct kp_span name, const char *end)
{
	if (path->size + name.size + 2 > sizeof(path->text))
		return false;
	memcpy(path->text + path->size, name.data, name.size);
	strcpy(path->text + path->size + name.size, end);
	path->size += name.size + strlen(end);
	return true;
}

/*
 * Add the files of a directory of the view.  A view limits the length and depth of its
 * paths, so recursion is bounded.
 */
static void add_directory(const struct install_tree *t, uint32_t dir,
			  struct view_path *path, struct file_tree *to)
{
	const struct kp_view_dir *d = kp_view_dir(t->view, dir);
	size_t before = path->size;

	for (uint32_t i = d->first; i < d->first + d->count; i++) {
		struct kp_view_name name = kp_view_name(t->view, i);
		bool is_sub = name.kind == KP_VIEW_DIR;

		if (!is_in_tree(dir, &name) ||
		    !append_name(path, name.text, is_sub ? "/" : ""))
			continue;
		if (is_sub)
			add_directory(t, name.index, path, to);
		else
			add_entry(t, path->text, name.index, to);
		path->size = before;
	}
}

static void report_conflicts(struct install_tree *t)
{
	size_t kept, counted;
	const char *const *texts = kp_view_conflicts(t->view, &kept, &counted);

	for (size_t i = 0; i < kept; i++)
		report_error(NULL, "%s", texts[i]);
	if (counted > kept)
		report_error(NULL, "and %zu conflicts more", counted - kept);
	t->n_faults += counted;
}

static kpack_error_t add_archives(struct install_tree *t, struct origin *from,
				  struct kpackx_error *why)
{
	struct sources *sources = &from->sources;
	struct view_path path = {.size = 0};
	struct file_tree shown = {0};
	kpack_error_t err;

	if (sources->count == 0)
		return KPACK_SUCCESS;
	archives_open(&t->archives, (int)sources->count, sources->items);
	t->n_faults += t->archives.failed;
	KP_TRY(kp_view_new(t->archives.items, t->archives.count, NULL, &t->view, why));
	report_conflicts(t);
	add_directory(t, 0, &path, &shown);
	err = join_files(t, from->of, &shown, why);
	file_tree_fini(&shown);
	return err;
}

/* --- owners ------------------------------------------------------------------------ */

/* The text of the member NAME of an entry's metadata; empty if it has none. */
static struct kp_span meta_text(const struct file_tree_item *item, const char *name)
{
	struct kp_mp m = kp_mp_over(kp_archive_meta_raw(item->archive, item->entry));
	struct kp_span key, text = {0};
	uint32_t pairs = 0;

	if (m.pos == m.end)
		return text;
	for (kp_mp_map(&m, &pairs); pairs && !m.fault; pairs--) {
		if (kp_mp_peek(&m) != KP_MP_STR) {
			kp_mp_skip(&m);
			kp_mp_skip(&m);
			continue;
		}
		if (!kp_mp_str(&m, &key))
			break;
		if (kp_span_is(key, name) && kp_mp_peek(&m) == KP_MP_STR)
			kp_mp_str(&m, &text);
		else
			kp_mp_skip(&m);
	}
	return text;
}

static const char *known_library(const struct library_set *set, struct kp_span name)
{
	for (size_t i = 0; i < set->count; i++)
		if (kp_span_is(name, set->items[i]->name))
			return set->items[i]->name;
	return NULL;
}

/*
 * Take the library from entries that name a known one; add all other files to ASKED, also
 * those that were packed with rules that are not given now.
 */
static void trust_entries(struct install_tree *t, const struct library_set *set,
			  struct file_tree *asked)
{
	for (size_t i = 0; i < t->files.count; i++) {
		const struct file_tree_item *item = &t->files.items[i];
		struct kp_span name =
			item->archive ? meta_text(item, "library") : (struct kp_span){0};
		const char *library = known_library(set, name);

		if (!library) {
			file_tree_add(asked, item);
			continue;
		}
		t->found.objects[i] = xcalloc(1, sizeof(**t->found.objects));
		t->found.objects[i]->library = library;
		t->found.objects[i]->role = "file";
	}
	file_tree_sort(asked);
}

/* The files that libraries are asked about. */
struct question {
	struct file_tree files;
	bool packing;
};

static void report_fault(void *arg, size_t file, const struct kpackx_error *why)
{
	const struct question *q = arg;

	if (!q->packing || !q->files.items[file].disk)
		report_why(q->files.items[file].path, why);
}

static kpack_error_t ask_libraries(struct install_tree *t, const struct library_set *set,
				   struct question *q, struct kpackx_error *why)
{
	struct library_found found = {0};

	KP_TRY(library_find_all(set, &q->files, report_fault, q, &found, &t->n_faults,
				why));
	for (size_t i = 0; i < q->files.count; i++) {
		const char *path = q->files.items[i].path;
		size_t file;

		if (!found.objects[i] ||
		    !file_tree_find(&t->files, kp_span_str(path), &file))
			continue;
		t->found.objects[file] = found.objects[i];
		found.objects[i] = NULL;
	}
	library_found_fini(&found);
	return KPACK_SUCCESS;
}

static kpack_error_t find_libraries(struct install_tree *t,
				    const struct install_tree_of *of,
				    struct kpackx_error *why)
{
	struct question q = {.packing = of->packing};
	kpack_error_t err;

	t->found = (struct library_found){&t->files,
					  xcalloc(t->files.count, sizeof(void *))};
	trust_entries(t, of->libraries, &q.files);
	err = ask_libraries(t, of->libraries, &q, why);
	file_tree_fini(&q.files);
	for (size_t i = 0; i < t->files.count; i++)
		t->n_databases += t->found.objects[i] != NULL;
	return err;
}

static kpack_error_t fill_tree(const struct install_tree_of *of, struct origin *from,
			       struct install_tree *out, struct kpackx_error *why)
{
	for (int i = 0; i < of->n_paths; i++) {
		kpack_error_t err = add_root(out, of->paths[i], from, why);

		if (err)
			return kp_fail_prefix(why, err, "%s", of->paths[i]);
	}
	KP_TRY(add_archives(out, from, why));
	KP_TRY(add_links(out, from, why));
	return find_libraries(out, of, why);
}

kpack_error_t install_tree_open(const struct install_tree_of *of,
				struct install_tree *out, struct kpackx_error *why)
{
	struct origin from = {.of = of};
	kpack_error_t err;

	*out = (struct install_tree){0};
	err = fill_tree(of, &from, out, why);
	file_tree_fini(&from.links);
	sources_fini(&from.sources);
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
