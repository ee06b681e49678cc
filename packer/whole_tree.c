/* SPDX-License-Identifier: MIT */
#include "whole_tree.h"
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include "limits.h"
#include "memory.h"
#include "msgpack.h"
#include "report.h"
#include "scan.h"

/* Names at the root of a mount that are no files of the tree. */
#define MOUNT_CONTROL ".kpackfs"
#define MOUNT_TOC "toc"

/* Where archives are: paths on the heap. */
struct sources {
	char **items;
	size_t count, cap;
};

static kpack_error_t add_source(struct sources *s, const char *dir, const char *name,
				struct kpackx_error *why)
{
	char *path;

	if (!kp_grow(&s->items, s->count, &s->cap, sizeof(*s->items)) ||
	    asprintf(&path, "%s%s%s", dir, name ? "/" : "", name ? name : "") < 0)
		return kp_fail_memory(why, strlen(dir), "a path");
	s->items[s->count++] = path;
	return KPACK_SUCCESS;
}

static void sources_fini(struct sources *s)
{
	while (s->count)
		free(s->items[--s->count]);
	free(s->items);
}

/* --- plain files --------------------------------------------------------------------- */

static kpack_error_t add_file(struct whole_tree *t, const FTSENT *e, size_t skip,
			      struct kpackx_error *why)
{
	struct file_tree_item item = {
		.path = e->fts_path + skip,
		.disk = e->fts_path,
		.size = (uint64_t)e->fts_statp->st_size,
		.mode = e->fts_statp->st_mode & 07777,
	};

	while (*item.path == '/')
		item.path++;
	return file_tree_add(&t->files, &item, why);
}

/* Archives at the root are looked into instead. */
static bool is_archive(const FTSENT *e)
{
	return e->fts_level == 1 && e->fts_namelen > 6 &&
	       strcmp(e->fts_name + e->fts_namelen - 6, ".kpack") == 0;
}

/* Is it one of the directories that are not of the tree itself? */
static bool is_special(const FTSENT *e, bool mounted)
{
	return e->fts_level == 1 && (strcmp(e->fts_name, SCAN_ARCHIVES) == 0 ||
				     (mounted && strcmp(e->fts_name, MOUNT_TOC) == 0));
}

static kpack_error_t visit(struct whole_tree *t, FTS *fts, FTSENT *e, size_t skip,
			   bool mounted, struct kpackx_error *why)
{
	switch (e->fts_info) {
	case FTS_D:
		if (is_special(e, mounted))
			fts_set(fts, e, FTS_SKIP);
		return KPACK_SUCCESS;
	case FTS_F:
		return is_archive(e) ? KPACK_SUCCESS : add_file(t, e, skip, why);
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		report_error(e->fts_path, "%s", strerror(e->fts_errno));
		t->n_faults++;
		return KPACK_SUCCESS;
	default:
		return KPACK_SUCCESS;
	}
}

/* The names of a mount are in its control directory even when it lists none. */
static bool is_mount(const char *root)
{
	struct stat st;
	char *path;
	bool yes;

	if (asprintf(&path, "%s/" MOUNT_CONTROL, root) < 0)
		return false;
	yes = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	free(path);
	return yes;
}

static kpack_error_t add_files(struct whole_tree *t, const char *root,
			       struct kpackx_error *why)
{
	char *const roots[] = {(char *)root, NULL};
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
	bool mounted = is_mount(root);
	kpack_error_t err = KPACK_SUCCESS;
	FTSENT *e;

	if (!fts)
		return kp_fail_errno(why, errno, "cannot walk it");
	while (!err && (errno = 0, e = fts_read(fts)))
		err = visit(t, fts, e, strlen(root), mounted, why);
	if (!err && errno)
		err = kp_fail_errno(why, errno, "cannot walk it");
	fts_close(fts);
	return err;
}

/* --- where archives are -------------------------------------------------------------- */

static bool is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool has_archives(const char *dir)
{
	struct kpackx_error ignored = {0};
	char **paths = NULL;
	size_t count = 0;

	if (kp_view_sources(dir, &paths, &count, &ignored))
		return false;
	for (size_t i = 0; i < count; i++)
		free(paths[i]);
	free(paths);
	return count > 0;
}

static kpack_error_t add_root(struct whole_tree *t, const char *root,
			      struct sources *sources, struct kpackx_error *why)
{
	size_t before = sources->count;

	if (!is_dir(root))
		return add_source(sources, root, NULL, why);
	KP_TRY(add_source(sources, root, SCAN_ARCHIVES, why));
	if (!has_archives(sources->items[before]))
		free(sources->items[--sources->count]);
	if (has_archives(root))
		KP_TRY(add_source(sources, root, NULL, why));
	return add_files(t, root, why);
}

/* --- what archives show -------------------------------------------------------------- */

/* A path of the view under construction. */
struct view_path {
	char text[KP_NAME_MAX + 1];
	size_t size;
};

static kpack_error_t add_entry(struct whole_tree *t, const char *path, uint32_t file,
			       struct kpackx_error *why)
{
	struct file_tree_item item = {.path = (char *)path};
	struct kp_entry_info info;
	struct kp_meta meta;

	item.archive = kp_view_entry(t->view, file, &item.entry);
	kp_archive_entry(item.archive, item.entry, &info);
	kp_archive_meta(item.archive, item.entry, &meta);
	item.size = info.size;
	item.mode = (mode_t)meta.mode & 07777;
	return file_tree_add(&t->files, &item, why);
}

/* Paths of a view are no longer and no deeper than names may be. */
static kpack_error_t add_shown(struct whole_tree *t, uint32_t dir, struct view_path *path,
			       struct kpackx_error *why)
{
	const struct kp_view_dir *d = kp_view_dir(t->view, dir);
	size_t before = path->size;
	kpack_error_t err = KPACK_SUCCESS;

	for (uint32_t i = d->first; i < d->first + d->count && !err; i++) {
		struct kp_view_name name = kp_view_name(t->view, i);
		bool is_sub = name.kind == KP_VIEW_DIR;

		if (dir == 0 && is_sub && kp_span_is(name.text, MOUNT_TOC))
			continue;
		if (!is_sub && name.kind != KP_VIEW_PATH && name.kind != KP_VIEW_LEGACY)
			continue;
		if (path->size + name.text.size + 2 > sizeof(path->text))
			continue;
		memcpy(path->text + path->size, name.text.data, name.text.size);
		path->size += name.text.size;
		path->text[path->size] = '\0';
		if (is_sub) {
			path->text[path->size++] = '/';
			err = add_shown(t, name.index, path, why);
		} else {
			err = add_entry(t, path->text, name.index, why);
		}
		path->size = before;
	}
	return err;
}

static void tell_conflicts(struct whole_tree *t)
{
	size_t kept, counted;
	const char *const *texts = kp_view_conflicts(t->view, &kept, &counted);

	for (size_t i = 0; i < kept; i++)
		report_error(NULL, "%s", texts[i]);
	if (counted > kept)
		report_error(NULL, "and %zu conflicts more", counted - kept);
	t->n_faults += counted;
}

static kpack_error_t add_archives(struct whole_tree *t, struct sources *sources,
				  struct kpackx_error *why)
{
	struct view_path path = {.size = 0};

	if (sources->count == 0)
		return KPACK_SUCCESS;
	archives_open(&t->archives, (int)sources->count, sources->items);
	t->n_faults += t->archives.failed;
	KP_TRY(kp_view_new(t->archives.items, t->archives.count, NULL, &t->view, why));
	tell_conflicts(t);
	return add_shown(t, 0, &path, why);
}

/* --- whose they are ------------------------------------------------------------------ */

/* The text of the member NAME of an entry's metadata; empty: there is none. */
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

/* Believe the entries that say it; the others and plain files are to be ASKED about. */
static kpack_error_t believe(struct whole_tree *t, const struct library_set *set,
			     struct file_tree *asked, struct kpackx_error *why)
{
	for (size_t i = 0; i < t->files.count; i++) {
		const struct file_tree_item *item = &t->files.items[i];
		struct kp_span name =
			item->archive ? meta_text(item, "library") : (struct kp_span){0};
		const char *library = known_library(set, name);

		if (!name.size)
			KP_TRY(file_tree_add(asked, item, why));
		if (!library)
			continue;
		t->found.objects[i] = calloc(1, sizeof(**t->found.objects));
		if (!t->found.objects[i])
			return kp_fail_memory(why, sizeof(**t->found.objects), "a file");
		t->found.objects[i]->library = library;
		t->found.objects[i]->role = "file";
	}
	return file_tree_sort(asked, why);
}

static void tell_fault(void *arg, size_t file, const struct kpackx_error *why)
{
	const struct file_tree *asked = arg;

	report_why(asked->items[file].path, why);
}

static kpack_error_t ask(struct whole_tree *t, const struct library_set *set,
			 struct file_tree *asked, struct kpackx_error *why)
{
	struct library_found found = {0};

	KP_TRY(library_find_all(set, asked, tell_fault, asked, &found, &t->n_faults,
				why));
	for (size_t i = 0; i < asked->count; i++) {
		size_t file;

		if (!found.objects[i] ||
		    !file_tree_find(&t->files, kp_span_str(asked->items[i].path), &file))
			continue;
		t->found.objects[file] = found.objects[i];
		found.objects[i] = NULL;
	}
	library_found_fini(&found);
	return KPACK_SUCCESS;
}

static kpack_error_t find_libraries(struct whole_tree *t, const struct library_set *set,
				    struct kpackx_error *why)
{
	struct file_tree asked = {0};
	kpack_error_t err;

	t->found = (struct library_found){&t->files,
					  calloc(t->files.count + 1, sizeof(void *))};
	if (!t->found.objects)
		return kp_fail_memory(why, t->files.count * sizeof(void *), "files");
	err = believe(t, set, &asked, why);
	if (!err)
		err = ask(t, set, &asked, why);
	file_tree_fini(&asked);
	for (size_t i = 0; i < t->files.count; i++)
		t->n_databases += t->found.objects[i] != NULL;
	return err;
}

kpack_error_t whole_tree_open(int n, char **paths, const struct library_set *libraries,
			      struct whole_tree *out, struct kpackx_error *why)
{
	struct sources sources = {0};
	kpack_error_t err = KPACK_SUCCESS;

	*out = (struct whole_tree){0};
	for (int i = 0; i < n && !err; i++) {
		err = add_root(out, paths[i], &sources, why);
		if (err)
			kp_fail_prefix(why, err, "%s", paths[i]);
	}
	if (!err)
		err = add_archives(out, &sources, why);
	if (!err)
		err = file_tree_sort(&out->files, why);
	if (!err)
		err = find_libraries(out, libraries, why);
	sources_fini(&sources);
	return err;
}

void whole_tree_close(struct whole_tree *tree)
{
	if (tree->found.objects)
		library_found_fini(&tree->found);
	file_tree_fini(&tree->files);
	kp_view_free(tree->view);
	archives_close(&tree->archives);
	*tree = (struct whole_tree){0};
}
