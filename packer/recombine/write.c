/* SPDX-License-Identifier: MIT */
/* Write one output tree. */
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/base/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/copy_or_leave.h"
#include "core/base/file.h"
#include "packer/binary/join.h"
#include "internal.h"
#include "packer/split/tree_name.h"

/* A directory that was made, and the directory whose attributes it gets. */
struct made {
	char *from, *to;
};

/* The first written path of a file with several hard links. */
struct written {
	const struct stat *seen;
	char *to;
};

struct writing {
	const struct recombine_component *c;
	char *root; /* of the tree */
	struct made *made;
	size_t n_made, made_cap;
	void *written; /* tree of struct written */
	size_t n_left; /* files that were left out */
};

/* --- directories ------------------------------------------------------------------- */

/* Takes FROM and TO. */
static kpack_error_t make_directory(struct writing *w, char *from, char *to,
				    struct kpackx_error *why)
{
	struct stat st;

	if (below_lstat(to, &st) == 0) {
		free(from);
		free(to);
		return KPACK_SUCCESS;
	}
	xgrow(&w->made, w->n_made, &w->made_cap, sizeof(*w->made));
	w->made[w->n_made++] = (struct made){from, to};
	return copy_directory(to, why);
}

static char *join_path(const char *dir, const char *path, size_t size)
{
	return xasprintf("%s/%.*s", dir, (int)size, path);
}

/* Make the parent directories of ITEM; finish_directories copies their attributes. */
static kpack_error_t make_parents(struct writing *w, const struct recombine_item *item,
				  struct kpackx_error *why)
{
	const char *path = item->file->path;

	for (const char *slash = strchr(path, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		size_t size = (size_t)(slash - path);

		KP_TRY(make_directory(w, join_path(item->tree->path, path, size),
				      join_path(w->root, path, size), why));
	}
	return KPACK_SUCCESS;
}

/*
 * Copy attributes last and innermost first, because writing changes a directory's times.
 */
static kpack_error_t finish_directories(struct writing *w, struct kpackx_error *why)
{
	for (size_t i = w->n_made; i-- > 0;) {
		kpack_error_t err =
			copy_directory_attributes(w->made[i].from, w->made[i].to, why);

		if (err)
			return kp_fail_prefix(why, err, "%s", w->made[i].to);
	}
	return KPACK_SUCCESS;
}

/* --- files ------------------------------------------------------------------------- */

static int by_inode(const void *a, const void *b)
{
	const struct stat *x = ((const struct written *)a)->seen;
	const struct stat *y = ((const struct written *)b)->seen;

	if (x->st_dev != y->st_dev)
		return x->st_dev < y->st_dev ? -1 : 1;
	return (x->st_ino > y->st_ino) - (x->st_ino < y->st_ino);
}

static void free_written(void *p)
{
	struct written *one = p;

	free(one->to);
	free(one);
}

/* Remember the written path of a file with several hard links. */
static void remember_file(struct writing *w, const struct shard_file *file,
			  const char *to)
{
	struct written *one = xmalloc(sizeof(*one));

	*one = (struct written){&file->seen, xstrdup(to)};
	if (!tsearch(one, &w->written, by_inode))
		xalloc_fail(0);
}

static const char *find_written(const struct writing *w, const struct shard_file *file)
{
	struct written key = {&file->seen, NULL};
	struct written *const *there =
		file->linked ? tfind(&key, (void *const *)&w->written, by_inode) : NULL;

	return there ? (*there)->to : NULL;
}

static kpack_error_t write_regular(struct writing *w, const struct recombine_item *item,
				   const char *from, const char *to,
				   struct kpackx_error *why)
{
	const char *before;

	if (item->rewritten)
		return join_write(from, to, &item->marker, why);
	before = find_written(w, item->file);
	if (before)
		return copy_link_or_seen(before, from, &item->file->seen, to, why);
	KP_TRY(copy_seen(from, &item->file->seen, to, why));
	if (item->file->linked)
		remember_file(w, item->file, to);
	return KPACK_SUCCESS;
}

/* Write a link, FIFO, device or socket; one that the user may not make is left out. */
static kpack_error_t write_special(struct writing *w, const struct recombine_item *item,
				   const char *from, const char *to,
				   struct kpackx_error *why)
{
	char *left;

	KP_TRY(copy_or_leave(from, &item->file->seen, to, &left, why));
	w->n_left += left != NULL;
	if (left && !w->c->args->quiet)
		report_error(from, "note: left out: %s", left);
	free(left);
	return KPACK_SUCCESS;
}

static kpack_error_t write_at(struct writing *w, const struct recombine_item *item,
			      const char *from, const char *to, struct kpackx_error *why)
{
	if (S_ISREG(item->file->mode))
		return write_regular(w, item, from, to, why);
	return write_special(w, item, from, to, why);
}

static kpack_error_t write_item(struct writing *w, const struct recombine_item *item,
				struct kpackx_error *why)
{
	const char *path = item->file->path;
	char *from = recombine_path(item), *to = join_path(w->root, path, strlen(path));
	kpack_error_t err = make_parents(w, item, why);

	if (!err && S_ISDIR(item->file->mode))
		return make_directory(w, from, to, why);
	if (!err)
		err = write_at(w, item, from, to, why);
	if (err)
		kp_fail_prefix(why, err, "%s", from);
	free(from);
	free(to);
	return err;
}

/* --- the manifest ------------------------------------------------------------------ */

static bool is_below(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(path, prefix, n) == 0 && (path[n] == '/' || !path[n]);
}

/*
 * True if the output tree has a file below PREFIX; the generic tree lists all prefixes.
 */
static bool is_listed(const struct recombine_component *c, int dest, const char *prefix)
{
	for (size_t i = 0; i < c->n_items; i++)
		if (c->items[i].chosen && c->items[i].dest == dest &&
		    is_below(c->items[i].file->path, prefix))
			return true;
	return dest == DEST_GENERIC;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
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
		most += c->trees->trees[i].n_prefixes;
	list = xmalloc(most * sizeof(*list));
	for (size_t i = 0; i < c->trees->n_trees; i++) {
		const struct shard_tree *t = &c->trees->trees[i];

		if (strcmp(t->component, c->name) != 0)
			continue;
		*any |= t->has_manifest;
		for (size_t j = 0; j < t->n_prefixes; j++)
			list[(*n)++] = t->prefixes[j];
	}
	if (*n)
		qsort(list, *n, sizeof(*list), by_text);
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
	return finish_directories(w, why);
}

kpack_error_t recombine_write(const struct recombine_component *c,
			      const struct staging *staging, struct recombine_tree *tree,
			      struct kpackx_error *why)
{
	struct writing w = {.c = c};
	kpack_error_t err;

	w.root = join_path(staging->path, tree->name, strlen(tree->name));
	err = below_mkdirs(w.root, 0777, why);
	if (!err)
		err = write_items(&w, tree, why);
	for (size_t i = 0; i < w.n_made; i++) {
		free(w.made[i].from);
		free(w.made[i].to);
	}
	free(w.made);
	tdestroy(w.written, free_written);
	free(w.root);
	return err;
}
