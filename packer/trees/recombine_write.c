/* SPDX-License-Identifier: MIT */
/* Write one output tree. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/path.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/tree_write.h"
#include "core/base/file.h"
#include "join.h"
#include "recombine_internal.h"
#include "tree_name.h"

struct writing {
	const struct recombine_component *c;
	char *root;             /* of the tree */
	struct tree_write tree; /* borrows `root` */
	size_t n_left;          /* files that were left out */
};

static char *join_path(const char *dir, const char *path)
{
	return xasprintf("%s/%s", dir, path);
}

/* --- files ------------------------------------------------------------------------- */

static kpack_error_t write_rewritten(const struct writing *w,
				     const struct recombine_item *item, const char *from,
				     struct kpackx_error *why)
{
	char *to = join_path(w->root, item->file->path);
	kpack_error_t err = join_write(from, to, &item->marker, why);

	free(to);
	return err ? kp_fail_prefix(why, err, "%s", from) : KPACK_SUCCESS;
}

/* Write a file, or leave it out. */
static kpack_error_t write_copy(struct writing *w, const struct recombine_item *item,
				const char *from, struct kpackx_error *why)
{
	char *left;

	KP_TRY(tree_write_entry(&w->tree, item->file->path, from, &item->file->seen,
				&left, why));
	w->n_left += left != NULL;
	if (left && !w->c->args->quiet)
		report_error(from, "note: left out: %s", left);
	free(left);
	return KPACK_SUCCESS;
}

static kpack_error_t write_item(struct writing *w, const struct recombine_item *item,
				struct kpackx_error *why)
{
	char *from = recombine_path(item);
	kpack_error_t err =
		tree_write_parents(&w->tree, item->file->path, item->tree->path, why);

	if (!err)
		err = item->rewritten ? write_rewritten(w, item, from, why)
				      : write_copy(w, item, from, why);
	free(from);
	return err;
}

/* --- the manifest ------------------------------------------------------------------ */

/*
 * True if the output tree has a file below PREFIX; the generic tree lists all prefixes.
 */
static bool is_listed(const struct recombine_component *c, int dest, const char *prefix)
{
	for (size_t i = 0; i < c->n_items; i++)
		if (c->items[i].chosen && c->items[i].dest == dest &&
		    kp_path_within(kp_span_str(c->items[i].file->path), prefix))
			return true;
	return dest == DEST_GENERIC;
}

/* The prefixes of all shards' manifests, sorted; sets *ANY if there is a manifest. */
static const char **collect_prefixes(const struct recombine_component *c, size_t *n,
				     bool *any)
{
	const char **list;
	size_t most = 0;

	*n = 0;
	*any = false;
	for (size_t i = 0; i < c->trees->n_trees; i++)
		most += c->trees->trees[i].prefixes.count;
	list = xmalloc(most * sizeof(*list));
	for (size_t i = 0; i < c->trees->n_trees; i++) {
		const struct shard_tree *t = &c->trees->trees[i];

		if (strcmp(t->component, c->name) != 0)
			continue;
		*any |= t->prefixes.manifest;
		for (size_t j = 0; j < t->prefixes.count; j++)
			list[(*n)++] = t->prefixes.items[j].path;
	}
	if (*n)
		qsort(list, *n, sizeof(*list), kp_order_texts);
	return list;
}

static kpack_error_t put_line(struct kp_outfile *out, uint64_t *at, const char *line,
			      struct kpackx_error *why)
{
	size_t n = strlen(line);

	KP_TRY(kp_outfile_pwrite(out, *at, line, n, why));
	KP_TRY(kp_outfile_pwrite(out, *at + n, "\n", 1, why));
	*at += n + 1;
	return KPACK_SUCCESS;
}

static kpack_error_t put_lines(const struct writing *w, int dest, const char **list,
			       size_t n, struct kpackx_error *why)
{
	struct kp_outfile out;
	uint64_t at = 0;
	kpack_error_t err =
		below_outfile_open_in(&out, w->root, ARTIFACT_MANIFEST, 0666, why);

	for (size_t i = 0; i < n && !err; i++) {
		if (i && strcmp(list[i], list[i - 1]) == 0)
			continue;
		if (is_listed(w->c, dest, list[i]))
			err = put_line(&out, &at, list[i], why);
	}
	if (!err) {
		out.lazy = true;
		err = kp_outfile_publish(&out, why);
	}
	kp_outfile_close(&out);
	return err;
}

static kpack_error_t write_manifest(const struct writing *w, int dest,
				    struct kpackx_error *why)
{
	size_t n;
	bool any;
	const char **list = collect_prefixes(w->c, &n, &any);
	kpack_error_t err = any ? put_lines(w, dest, list, n, why) : KPACK_SUCCESS;

	free(list);
	return err;
}

/* --- the tree ---------------------------------------------------------------------- */

static kpack_error_t write_items(struct writing *w, struct recombine_tree *tree,
				 struct kpackx_error *why)
{
	for (size_t i = 0; i < w->c->n_items; i++) {
		const struct recombine_item *item = &w->c->items[i];

		if (!item->chosen || item->dest != tree->dest)
			continue;
		KP_TRY(write_item(w, item, why));
		tree->files += !S_ISDIR(item->file->mode);
		tree->bytes += item->file->size;
		tree->joined += item->rewritten;
	}
	tree->files -= w->n_left;
	KP_TRY(write_manifest(w, tree->dest, why));
	return tree_write_finish(&w->tree, why);
}

kpack_error_t recombine_write(const struct recombine_component *c,
			      const struct staging *staging, struct recombine_tree *tree,
			      struct kpackx_error *why)
{
	struct writing w = {.c = c};
	kpack_error_t err;

	w.root = join_path(staging->path, tree->name);
	tree_write_begin(&w.tree, w.root, true);
	err = below_mkdirs(w.root, 0777, why);
	if (!err)
		err = write_items(&w, tree, why);
	tree_write_end(&w.tree);
	free(w.root);
	return err;
}
