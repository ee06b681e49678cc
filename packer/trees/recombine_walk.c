/* SPDX-License-Identifier: MIT */
#include "recombine_walk.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"
#include "tree_name.h"

/* --- the manifest ------------------------------------------------------------------ */

static kpack_error_t read_manifest(struct shard_tree *t, struct kpackx_error *why)
{
	char *path = xasprintf("%s/" ARTIFACT_MANIFEST, t->path);
	kpack_error_t err = prefixes_list(path, &t->prefixes, why);

	if (err)
		kp_fail_prefix(why, err, "%s", path);
	free(path);
	return err;
}

/* --- files ------------------------------------------------------------------------- */

struct walk {
	struct shard_tree *tree;
	size_t cap;
	size_t before[SHARD_DEPTH_MAX]; /* per open directory: files before it */
};

static void add_file(struct walk *w, const struct tree_item *e)
{
	struct shard_tree *t = w->tree;
	bool regular = S_ISREG(e->st.st_mode);

	xgrow(&t->files, t->n_files, &w->cap, sizeof(*t->files));
	t->files[t->n_files++] = (struct shard_file){
		.path = xstrdup(e->rest),
		.mode = e->st.st_mode,
		.seen = file_identity_of(&e->st),
		.size = regular ? (uint64_t)e->st.st_size : 0,
	};
}

static kpack_error_t enter_directory(struct walk *w, const struct tree_item *e,
				     struct kpackx_error *why)
{
	if (e->level == SHARD_DEPTH_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s: directories are nested more than %d deep",
			       w->tree->path, SHARD_DEPTH_MAX);
	w->before[e->level] = w->tree->n_files;
	return KPACK_SUCCESS;
}

static kpack_error_t walk_item(struct walk *w, const struct tree_item *e,
			       struct kpackx_error *why)
{
	switch (e->kind) {
	case TREE_FAULT:
		errno = e->error;
		return below_fail(why, "%s/%s: cannot read it", w->tree->path, e->rest);
	case TREE_DIR:
		return enter_directory(w, e, why);
	case TREE_DIR_END:
		if (e->level && w->tree->n_files == w->before[e->level])
			add_file(w, e);
		return KPACK_SUCCESS;
	default:
		break;
	}
	if (strcmp(e->rest, ARTIFACT_MANIFEST) == 0 && S_ISREG(e->st.st_mode))
		return read_manifest(w->tree, why);
	add_file(w, e);
	return KPACK_SUCCESS;
}

static int by_path(const void *a, const void *b)
{
	const struct shard_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

kpack_error_t shard_walk(struct shard_tree *tree, struct kpackx_error *why)
{
	struct walk w = {.tree = tree};
	struct tree_list *list = tree_list_open(tree->path);
	kpack_error_t err = KPACK_SUCCESS;
	struct tree_item e;

	while (!err && tree_list_next(list, &e))
		err = walk_item(&w, &e, why);
	tree_list_close(list);
	if (tree->n_files)
		qsort(tree->files, tree->n_files, sizeof(*tree->files), by_path);
	return err;
}
