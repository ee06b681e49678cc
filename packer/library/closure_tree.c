/* SPDX-License-Identifier: MIT */
/*
 * One tree of plain files and entries.  The plain files of all roots come first, then the files that the
 * archives of all roots show, then links into these; so whatever comes first at a path is what programs get.
 */
#include "closure.h"
#include <limits.h>
#include <stdlib.h>
#include "core/archive/naming.h"
#include "packer/archives/content.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"
#include "rocfft.h"

/* What is known of a tree while it is opened. */
struct origin {
	const struct install_tree_of *of;
	char **sources; /* places of archives; on the heap */
	size_t n_sources, sources_cap;
	struct file_tree links; /* followed when all files are known */
};

static void origin_fini(struct origin *from)
{
	file_tree_fini(&from->links);
	while (from->n_sources)
		free(from->sources[--from->n_sources]);
	free(from->sources);
}

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

/*
 * Add MORE; if a path already exists, the existing file stays, and other bytes at it are reported:
 * who reads which is then chance.  Who packs a tree compares with what was packed before on his own:
 * there a new file replaces it.
 */
static kpack_error_t join_files(struct install_tree *t, struct file_tree *more,
				struct kpackx_error *why)
{
	file_tree_sort(more);
	for (size_t i = 0; i < more->count && !t->packing; i++) {
		const struct file_tree_item *both[] = {NULL, &more->items[i]};
		struct kpackx_error fault = {0};
		struct kp_hash hashes[2];
		kpack_error_t err = KPACK_SUCCESS;
		size_t file;
		bool same;

		if (!file_tree_find(&t->files, both[1]->path, &file))
			continue;
		both[0] = &t->files.items[file];
		same = both[0]->size == both[1]->size;
		for (size_t k = 0; k < 2 && same && !err; k++) {
			const struct file_tree_item *item = both[k];

			err = item->disk ? content_hash_file(item->disk, 0, item->size,
							     &hashes[k], &fault)
					 : content_hash_entry(item->archive, item->entry,
							      &hashes[k], &fault);
			if (err)
				err = kp_fail_prefix(&fault, err, "%s", place_of(item));
		}
		if (err == KPACK_ERROR_OUT_OF_MEMORY)
			return kp_fail(why, err, "%s", fault.text);
		if (same && !err && kp_hash_is(&hashes[0], hashes[1].bytes))
			continue;
		t->n_faults++;
		if (err)
			report_why(both[0]->path, &fault);
		else
			report_error(both[0]->path, "other bytes in %s than in %s",
				     place_of(both[0]), place_of(both[1]));
	}
	for (size_t i = 0; i < more->count; i++)
		file_tree_add(&t->files, &more->items[i]);
	file_tree_sort(&t->files);
	return KPACK_SUCCESS;
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

static void add_plain_file(struct file_tree *to, const char *prefix,
			   const struct tree_item *e, const struct stat *st)
{
	KP_AUTO_FREE char *path =
		xasprintf("%s%s%s", prefix, *prefix ? "/" : "", e->rest);

	file_tree_add(to, &(struct file_tree_item){.path = path,
						   .disk = (char *)e->path,
						   .size = (uint64_t)st->st_size,
						   .mode = st->st_mode & 07777});
}

/*
 * Add what ROOT has on the disk, and remember where its archives are: in the root itself, in its
 * .kpack, and in directories as kpack pack --archive-dir makes them.
 */
static kpack_error_t add_root(struct install_tree *t, const char *root,
			      struct origin *from, struct kpackx_error *why)
{
	KP_AUTO_FREE char *control = xasprintf("%s/" KP_CONTROL_NAME, root);
	const char *prefix = from->of->prefix;
	size_t first = from->n_sources;
	KP_AUTO(file_tree) files = {0};
	struct tree_list *list;
	struct tree_item e;
	struct stat st;
	bool mounted;

	if (below_stat(root, &st) < 0)
		return below_fail(why, "cannot look at it");
	if (!S_ISDIR(st.st_mode)) {
		add_source(from, xstrdup(root));
		return KPACK_SUCCESS;
	}
	add_archives_of(from, xasprintf("%s/" KP_ARCHIVES_DIR, root));
	add_archives_of(from, xstrdup(root));
	/* a mount has a control directory, even if it does not list it */
	mounted = below_stat(control, &st) == 0 && S_ISDIR(st.st_mode);
	list = tree_list_open(root);
	while (tree_list_next(list, &e)) {
		bool archive = kp_is_archive_name(e.name);
		size_t dir, i = first;

		if (e.kind == TREE_FAULT) {
			report_error(e.path, "%s", strerror(e.error));
			t->n_faults++;
		} else if (e.kind == TREE_DIR && e.level == 1 &&
			   (strcmp(e.name, KP_ARCHIVES_DIR) == 0 ||
			    (mounted && strcmp(e.name, KP_TOC_NAME) == 0))) {
			tree_list_skip(list);
		} else if (e.kind == TREE_OTHER && S_ISREG(e.st.st_mode)) {
			if (archive && e.level == 1)
				continue; /* its contents are read instead */
			add_plain_file(&files, prefix, &e, &e.st);
			/* a .kpack below the root is of another tree */
			if (!archive || mounted || kp_is_archive_of_tree(e.path))
				continue;
			dir = (size_t)(e.name - e.path) - 1;
			while (i < from->n_sources &&
			       (strncmp(from->sources[i], e.path, dir) != 0 ||
				from->sources[i][dir]))
				i++;
			if (i == from->n_sources)
				add_source(from, xstrndup(e.path, dir));
		} else if (e.kind == TREE_OTHER && S_ISLNK(e.st.st_mode)) {
			/* loaders follow links; a dangling one may lead to an entry */
			if (below_stat(e.path, &st) < 0)
				add_plain_file(&from->links, prefix, &e, &e.st);
			else if (S_ISREG(st.st_mode))
				add_plain_file(&files, prefix, &e, &st);
		}
	}
	tree_list_close(list);
	return join_files(t, &files, why);
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

/* --- libraries ------------------------------------------------------------------------- */

static void report_fault(void *arg, size_t file, const struct kpackx_error *why)
{
	const struct install_tree *t = arg;

	if (!t->packing || !t->files.items[file].disk)
		report_why(t->files.items[file].path, why);
}

/* --- the tree -------------------------------------------------------------------------- */

kpack_error_t install_tree_open(const struct install_tree_of *of, struct install_tree *t,
				struct kpackx_error *why)
{
	KP_AUTO(origin) from = {.of = of};
	KP_AUTO(file_tree) shown = {0};
	KP_AUTO(file_tree) linked = {0};
	size_t kept, counted;
	const char *const *texts;
	kpack_error_t err;

	*t = (struct install_tree){.packing = of->packing};
	for (int i = 0; i < of->n_paths; i++)
		if ((err = add_root(t, of->paths[i], &from, why)))
			return kp_fail_prefix(why, err, "%s", of->paths[i]);
	if (from.n_sources) {
		archives_open(&t->archives, (int)from.n_sources, from.sources);
		t->n_faults += t->archives.failed;
		KP_TRY(kp_view_new(t->archives.items, t->archives.count, NULL, &t->view,
				   why));
		texts = kp_view_conflicts(t->view, &kept, &counted);
		for (size_t i = 0; i < kept; i++)
			report_error(NULL, "%s", texts[i]);
		if (counted > kept)
			report_error(NULL, "and %zu more", counted - kept);
		t->n_faults += counted;
		add_directory(t, 0, "", &shown);
		KP_TRY(join_files(t, &shown, why));
	}
	/*
	 * Symbolic links to files that archives show lead to nothing on the disk, but do so where
	 * the archives are mounted over the tree.
	 */
	for (size_t i = 0; i < from.links.count; i++) {
		const struct file_tree_item *link = &from.links.items[i];
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
		file_tree_add(&linked, &item);
	}
	KP_TRY(join_files(t, &linked, why));

	/*
	 * Entries that name a known library are trusted.  Libraries are asked about all other
	 * files, also those that were packed with rules that are not given now.
	 */
	t->found = (struct library_found){&t->files,
					  xcalloc(t->files.count, sizeof(void *))};
	for (size_t i = 0; i < t->files.count; i++) {
		const struct file_tree_item *item = &t->files.items[i];
		KP_AUTO(file_names) names = {0};
		const char *library = NULL;
		struct library_object *o;

		if (!item->archive ||
		    file_names_of_msgpack(kp_archive_meta_raw(item->archive, item->entry),
					  "library", &names, NULL) ||
		    names.count == 0)
			continue;
		for (size_t k = 0; k < of->libraries->count && !library; k++)
			if (strcmp(names.items[0], of->libraries->items[k]->name) == 0)
				library = of->libraries->items[k]->name;
		if (!library)
			continue;
		t->found.objects[i] = o = xcalloc(1, sizeof(*o));
		*o = (struct library_object){.library = library, .role = "file"};
		library_add_arch(o, KP_ARCH_GENERIC);
	}
	KP_TRY(library_find_all(of->libraries, &t->files, report_fault, t, &t->found,
				&t->n_faults, why));
	for (size_t i = 0; i < t->files.count; i++)
		t->n_databases += t->found.objects[i] != NULL;
	return KPACK_SUCCESS;
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
