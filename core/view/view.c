/* SPDX-License-Identifier: MIT */
/*
 * How a view is built: every entry adds its names to a list of (directory, text, file) -
 * entries.c, and every bundle adds its name - bundles.c.  A hash table of (parent,
 * component) finds the directories - paths.c.  The list is then sorted by directory
 * (counting sort) and within each directory by text, so that conflicting names become
 * adjacent - settle.c.
 *
 * What a view is then: arrays of directories, files and names, which refer to each other by
 * number, and texts in one arena.  A directory's names are neighbours, sorted, so that a look-up
 * is a binary search.  A file has a global number: the entries of all archives counted through,
 * and behind them the bundles; so four bytes say archive and entry.
 */
#include <stdlib.h>
#include "builder.h"

kpack_error_t kp_view_new(struct kpack_archive *const *archives, size_t n,
			  const struct kp_view_options *options, struct kp_view **out,
			  struct kpackx_error *why)
{
	KP_AUTO_FREE struct kp_view_builder *b = calloc(1, sizeof(*b));
	struct kp_view *v = calloc(1, sizeof(*v));
	bool ok = false;
	uint64_t total = 0;
	size_t keys = 0;

	if (!b || !v)
		goto out;
	b->v = v;
	b->options = options;
	v->archives = malloc((n + 1) * sizeof(struct kpack_archive *));
	v->bases = malloc((n + 1) * sizeof(*v->bases));
	if (!v->archives || !v->bases)
		goto out;
	v->n_archives = n;
	for (size_t i = 0; i < n; i++) {
		v->archives[i] = archives[i];
		v->bases[i] = (uint32_t)total;
		total += kp_archive_entry_count(archives[i]);
		keys += kp_archive_toc(archives[i])->n_binaries;
		if (total > KP_NODE_MAX)
			goto out;
	}
	v->bases[n] = (uint32_t)total;

	/* room, in huge pages, for two names and a file of each entry, and a directory of each key */
	b->dirs_cap = b->open_dirs_cap = keys + keys / 8 + 256;
	b->pending_cap = 2 * (size_t)total + b->dirs_cap;
	b->pending = kp_large_alloc(b->pending_cap * sizeof(*b->pending));
	b->files_cap = (size_t)total + 1;
	v->files = kp_large_alloc(b->files_cap * sizeof(*v->files));
	v->dirs = kp_large_alloc(b->dirs_cap * sizeof(*v->dirs));
	b->open_dirs = kp_large_alloc(b->open_dirs_cap * sizeof(*b->open_dirs));
	b->arena_cap = 64 * keys + 4096;
	v->arena = kp_large_alloc(b->arena_cap);
	ok = b->pending && v->files && v->dirs && b->open_dirs && v->arena &&
	     kp_view_make_roots(b) && kp_view_add_entries(b) && kp_view_add_bundles(b) &&
	     kp_view_settle(b);
out:
	if (b) {
		free(b->pending);
		free(b->open_dirs);
		free(b->dir_set.slots);
		free(b->file_set.slots);
		free(b->text_set.slots);
		free(b->archive_ids);
		free(b->code);
	}
	if (!ok) {
		kp_view_free(v);
		return kp_fail_memory(why, 0, "the tree");
	}
	/* give back what was allocated but not used */
	v->arena = kp_large_trim(v->arena, v->arena_size);
	v->files = kp_large_trim(v->files, v->n_files * sizeof(*v->files));
	v->dirs = kp_large_trim(v->dirs, v->n_dirs * sizeof(*v->dirs));
	*out = v;
	return KPACK_SUCCESS;
}

void kp_view_free(struct kp_view *v)
{
	if (!v)
		return;
	kp_faults_fini(&v->conflicts);
	free(v->conflict_texts);
	free(v->archives);
	free(v->bases);
	free(v->arena);
	free(v->dirs);
	free(v->names);
	free(v->files);
	free(v->bundles);
	free(v->parts);
	free(v->headers);
	free(v);
}

bool kp_view_hide(struct kp_view *v, uint32_t dir, struct kp_span name)
{
	struct kp_view_dir *d = &v->dirs[dir];
	struct kp_view_entry_name *at;
	uint32_t number;

	if (!kp_view_lookup(v, dir, name, &number))
		return false;
	at = &v->names[number];
	d->subdirs -= kp_node_kind(at->node) == KP_VIEW_DIR;
	d->count--;
	memmove(at, at + 1, (d->first + d->count - number) * sizeof(*at));
	return true;
}

uint32_t kp_view_dir_count(const struct kp_view *v)
{
	return v->n_dirs;
}

uint32_t kp_view_file_count(const struct kp_view *v)
{
	return v->n_files;
}

const struct kp_view_dir *kp_view_dir(const struct kp_view *v, uint32_t dir)
{
	return &v->dirs[dir];
}

const struct kp_view_file *kp_view_file(const struct kp_view *v, uint32_t file)
{
	return &v->files[file];
}

struct kp_view_name kp_view_name(const struct kp_view *v, uint32_t name)
{
	const struct kp_view_entry_name *n = &v->names[name];

	return (struct kp_view_name){kp_view_text(v, n->text), kp_node_kind(n->node),
				     kp_node_number(n->node)};
}

bool kp_view_lookup(const struct kp_view *v, uint32_t dir, struct kp_span text,
		    uint32_t *name)
{
	uint32_t low = v->dirs[dir].first, high = low + v->dirs[dir].count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		int c = kp_span_cmp(kp_view_text(v, v->names[mid].text), text);

		if (c == 0) {
			*name = mid;
			return true;
		}
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

bool kp_view_find_dir(const struct kp_view *v, struct kp_span path, uint32_t *dir)
{
	uint32_t name;

	*dir = KP_VIEW_ROOT;
	for (size_t at = 0, end; at < path.size; at = end + 1) {
		for (end = at; end < path.size && path.data[end] != '/'; end++)
			;
		if (end == at)
			continue;
		if (!kp_view_lookup(v, *dir, (struct kp_span){path.data + at, end - at},
				    &name) ||
		    kp_node_kind(v->names[name].node) != KP_VIEW_DIR)
			return false;
		*dir = kp_node_number(v->names[name].node);
	}
	return true;
}

struct kpack_archive *kp_view_entry(const struct kp_view *v, uint32_t file, size_t *entry)
{
	return v->archives[kp_view_archive(v, file, entry)];
}

/* The bundle that FILE is, or NULL. */
static const struct kp_view_composed *bundle_of(const struct kp_view *v, uint32_t file)
{
	uint32_t global = v->files[file].global, end = v->bases[v->n_archives];

	return global < end ? NULL : &v->bundles[global - end];
}

bool kp_view_bundle(const struct kp_view *v, uint32_t file, struct kp_view_bundle *out)
{
	const struct kp_view_composed *c = bundle_of(v, file);

	if (!c)
		return false;
	*out = (struct kp_view_bundle){
		.header = {v->headers + c->header, c->header_size},
		.parts = v->parts + c->first,
		.count = c->count,
		.size = c->size,
	};
	return true;
}

size_t kp_view_archive(const struct kp_view *v, uint32_t file, size_t *entry)
{
	const struct kp_view_composed *c = bundle_of(v, file);
	uint32_t global = c ? c->global : v->files[file].global;
	size_t low = 0, high = v->n_archives;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;
		if (v->bases[mid] <= global)
			low = mid;
		else
			high = mid;
	}
	*entry = global - v->bases[low];
	return low;
}

const char *const *kp_view_conflicts(const struct kp_view *v, size_t *kept,
				     size_t *counted)
{
	*kept = v->conflicts.kept;
	if (counted)
		*counted = v->conflicts.counted;
	return v->conflict_texts;
}
