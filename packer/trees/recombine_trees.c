/* SPDX-License-Identifier: MIT */
#include "recombine_trees.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/cli/report.h"
#include "recombine_walk.h"
#include "core/base/text.h"
#include "core/target/target.h"
#include "tree_name.h"

static void tree_fini(struct shard_tree *t)
{
	for (size_t i = 0; i < t->n_files; i++)
		free(t->files[i].path);
	free(t->files);
	prefixes_close(&t->prefixes);
	free(t->component);
	free(t->target);
	free(t->path);
}

void shard_trees_fini(struct shard_trees *trees)
{
	for (size_t i = 0; i < trees->n_trees; i++)
		tree_fini(&trees->trees[i]);
	for (size_t i = 0; i < trees->n_shards; i++)
		free(trees->shards[i]);
	free(trees->trees);
	free(trees->shards);
	*trees = (struct shard_trees){0};
}

size_t shard_trees_number(const struct shard_trees *trees, const char *shard)
{
	size_t i = 0;

	while (i < trees->n_shards && strcmp(trees->shards[i], shard) != 0)
		i++;
	return i;
}

/* --- names in a directory ---------------------------------------------------------- */

struct listing {
	struct dirent **names;
	int count;
};

static int is_shown(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static kpack_error_t list_directory(const char *dir, struct listing *out,
				    struct kpackx_error *why)
{
	out->count = below_scandir(dir, &out->names, is_shown);
	return out->count < 0 ? below_fail(why, "%s: cannot list it", dir)
			      : KPACK_SUCCESS;
}

static void listing_fini(struct listing *l)
{
	for (int i = 0; i < l->count; i++)
		free(l->names[i]);
	free(l->names);
}

/*
 * Set *PATH to DIR/NAME and *IS_DIR to whether it is a directory.  A symbolic link to a
 * directory is an error, because it could lead anywhere.
 */
static kpack_error_t check_directory(const char *dir, const char *name, char **path,
				     bool *is_dir, struct kpackx_error *why)
{
	struct stat st;

	*path = xasprintf("%s/%s", dir, name);
	if (below_lstat(*path, &st) < 0)
		return below_fail(why, "%s: cannot stat", *path);
	*is_dir = S_ISDIR(st.st_mode);
	if (!S_ISLNK(st.st_mode) || below_stat(*path, &st) < 0 || !S_ISDIR(st.st_mode))
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
		       "%s: is a symbolic link to a directory; not followed", *path);
}

/* --- trees ------------------------------------------------------------------------- */

static bool is_wanted(const char *name, size_t size, char *const *components, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(components[i]) == size &&
		    strncmp(components[i], name, size) == 0)
			return true;
	return !components;
}

static kpack_error_t add_tree(struct shard_trees *trees, const char *shard,
			      const char *path, const char *name, size_t size,
			      struct kpackx_error *why)
{
	struct shard_tree *t;

	trees->trees = xrealloc(trees->trees, (trees->n_trees + 1) * sizeof(*t));
	t = &trees->trees[trees->n_trees++];
	*t = (struct shard_tree){.shard = shard,
				 .path = xstrdup(path),
				 .component = xstrndup(name, size),
				 .target = xstrdup(name + size + 1)};
	return shard_walk(t, why);
}

struct reading {
	struct shard_trees *trees;
	char *const *components;
	size_t n_components;
};

static kpack_error_t read_entry(const struct reading *r, const char *shard,
				const char *dir, const char *name,
				struct kpackx_error *why)
{
	size_t size = tree_component_size(name);
	char *path = NULL;
	bool is_dir = false;
	kpack_error_t err = check_directory(dir, name, &path, &is_dir, why);

	if (!err && (size == 0 || !is_dir))
		report_error(path, "is not a tree named <component>_<target>; left out");
	else if (!err && is_wanted(name, size, r->components, r->n_components))
		err = add_tree(r->trees, shard, path, name, size, why);
	free(path);
	return err;
}

static kpack_error_t read_shard(const struct reading *r, const char *dir,
				const char *shard, struct kpackx_error *why)
{
	struct listing l = {0};
	char *path = xasprintf("%s/%s", dir, shard);
	kpack_error_t err = list_directory(path, &l, why);

	for (int i = 0; i < l.count && !err; i++)
		err = read_entry(r, shard, path, l.names[i]->d_name, why);
	listing_fini(&l);
	free(path);
	return err;
}

/* --- shards ------------------------------------------------------------------------ */

static kpack_error_t add_shard(struct shard_trees *trees, const char *dir,
			       const char *name, const char *primary,
			       struct kpackx_error *why)
{
	char *path = NULL;
	bool is_dir = false;
	kpack_error_t err = check_directory(dir, name, &path, &is_dir, why);

	if (!err && is_dir) {
		size_t at = strcmp(name, primary) == 0 ? 0 : trees->n_shards;

		memmove(trees->shards + at + 1, trees->shards + at,
			(trees->n_shards - at) * sizeof(*trees->shards));
		trees->shards[at] = xstrdup(name);
		trees->n_shards++;
	} else if (!err) {
		report_error(path, "is not the directory of a shard; left out");
	}
	free(path);
	return err;
}

static kpack_error_t read_shards(struct shard_trees *trees, const char *dir,
				 const char *primary, struct kpackx_error *why)
{
	struct listing l = {0};
	kpack_error_t err = list_directory(dir, &l, why);

	if (!err)
		trees->shards = xcalloc((size_t)l.count, sizeof(*trees->shards));
	for (int i = 0; i < l.count && !err; i++)
		err = add_shard(trees, dir, l.names[i]->d_name, primary, why);
	listing_fini(&l);
	if (!err && (trees->n_shards == 0 || strcmp(trees->shards[0], primary) != 0))
		err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			      "%s: has no shard '%s', which is the primary one", dir,
			      primary);
	return err;
}

kpack_error_t shard_trees_read(const char *dir, const char *primary,
			       char *const *components, size_t n_components,
			       struct shard_trees *out, struct kpackx_error *why)
{
	struct reading r = {out, components, n_components};

	*out = (struct shard_trees){0};
	KP_TRY(read_shards(out, dir, primary, why));
	for (size_t i = 0; i < out->n_shards; i++)
		KP_TRY(read_shard(&r, dir, out->shards[i], why));
	return KPACK_SUCCESS;
}
