/* SPDX-License-Identifier: MIT */
#include "mount_command.h"
#include <errno.h>
#include <stdlib.h>
#include "core/archive/archive.h"
#include "mount_places.h"
#include "core/view/view.h"
#include "core/archive/naming.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"

/* --- what is packed ------------------------------------------------------------------ */

/* Returns the part of PATH after PREFIX and a slash; empty: PATH is not below PREFIX. */
static struct kp_span below_prefix(struct kp_span path, const char *prefix)
{
	size_t n = strlen(prefix);

	if (n == 0)
		return path;
	if (!kp_span_starts(path, prefix, n) || path.size <= n || path.data[n] != '/')
		return (struct kp_span){0};
	return (struct kp_span){path.data + n + 1, path.size - n - 1};
}

static void add_entries(const struct kpack_archive *a, const char *prefix,
			struct mounts *m)
{
	for (size_t i = 0; i < kp_archive_entry_count(a); i++) {
		struct kp_meta meta;
		struct kp_span rest;
		char *path;

		kp_archive_meta(a, i, &meta);
		rest = below_prefix(meta.path, prefix);
		if (rest.size == 0)
			continue;
		path = xstrndup((const char *)rest.data, rest.size);
		mounts_add(m, path, MOUNTS_PACKED);
		free(path);
	}
}

/* Add an archive's entries; an unreadable archive will not be mounted either. */
static void add_archive(const char *path, const char *prefix, struct mounts *m)
{
	struct kpack_archive *a = NULL;

	if (!below_archive_open(path, &a, NULL))
		add_entries(a, prefix, m);
	kp_archive_close(a);
}

static void add_archives(const struct mount_tree *tree, struct mounts *m)
{
	char **paths = NULL;
	size_t n = 0;

	if (below_archives_find(tree->archives, &paths, &n, NULL))
		return;
	for (size_t i = 0; i < n; i++) {
		add_archive(paths[i], tree->prefix, m);
		free(paths[i]);
	}
	free(paths);
}

/* --- what exists --------------------------------------------------------------------- */

/* Returns the first entry of SCAN that is not before PATH followed by NEXT. */
static size_t lower_bound(const struct scan *scan, const char *path, char next)
{
	size_t low = 0, high = scan->n_entries, n = strlen(path);

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const char *other = scan->entries[mid].relative;
		int c = strncmp(other, path, n);

		if (c < 0 || (c == 0 && (unsigned char)other[n] < (unsigned char)next))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * Whether DIR had files before packing: then it may be covered; an empty one must stay
 * visible.
 */
static bool had_files(const struct scan *scan, const char *dir)
{
	size_t n = strlen(dir), at = lower_bound(scan, dir, '/');

	return at < scan->n_entries && strncmp(scan->entries[at].relative, dir, n) == 0 &&
	       scan->entries[at].relative[n] == '/';
}

static void add_tree_entry(const struct mount_tree *tree, struct tree_list *list,
			   const struct tree_item *item, struct mounts *m)
{
	bool open;

	if (item->level == 0 || item->kind == TREE_DIR_END)
		return;
	if (strcmp(item->rest, tree->scan->archives_dir) == 0) {
		/* what is above it stays visible: a mount would cover its own archives */
		if (item->level > 1)
			mounts_add(m, item->rest, MOUNTS_KEPT);
		tree_list_skip(list);
		return;
	}
	open = item->kind == TREE_DIR && had_files(tree->scan, item->rest);
	mounts_add(m, item->rest, open ? MOUNTS_DIRECTORY : MOUNTS_KEPT);
}

static void add_tree(const struct mount_tree *tree, struct mounts *m)
{
	struct tree_list *list = tree_list_open(tree->root);
	struct tree_item item;

	while (tree_list_next(list, &item))
		add_tree_entry(tree, list, &item, m);
	tree_list_close(list);
}

/* --- together ------------------------------------------------------------------------ */

static void decide_mounts(const struct mount_tree *tree, struct mounts *m)
{
	add_archives(tree, m);
	if (m->n_paths == 0)
		return;
	add_tree(tree, m);
	mounts_decide(m);
}

kpack_error_t mount_line(const struct mount_tree *tree, char **command,
			 struct kpackx_error *why)
{
	char *root = below_real(tree->root), *archives;
	struct mounts m = {0};

	*command = NULL;
	if (!root)
		return below_fail(why, "%s", tree->root);
	archives = below_real(tree->archives);
	if (archives) {
		const struct mounts_names names = {root, archives, tree->group,
						   tree->prefix};

		decide_mounts(tree, &m);
		*command = mounts_command(&m, &names);
	}
	mounts_fini(&m);
	free(archives);
	free(root);
	return KPACK_SUCCESS;
}
