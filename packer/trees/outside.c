/* SPDX-License-Identifier: MIT */
#include "outside.h"
#include <errno.h>
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"

static void add_entry(struct outside *out, const struct tree_item *e)
{
	char *path = xstrdup(e->path);

	xgrow(&out->items, out->count, &out->cap, sizeof(*out->items));
	out->items[out->count++] = (struct outside_entry){
		.path = path,
		.relative = path + (e->rest - e->path),
		.id = file_identity_of(&e->st),
	};
}

static kpack_error_t visit_path(struct tree_list *list, const struct tree_item *e,
				const struct prefixes *prefixes, struct outside *out,
				struct kpackx_error *why)
{
	if (e->kind == TREE_FAULT) {
		errno = e->error;
		return below_fail(why, "%s", e->path);
	}
	if (e->kind == TREE_DIR_END || e->level == 0)
		return KPACK_SUCCESS;
	if (e->kind == TREE_DIR && prefixes_has(prefixes, e->rest))
		tree_list_skip(list);
	add_entry(out, e);
	return KPACK_SUCCESS;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct outside_entry *)a)->relative,
		      ((const struct outside_entry *)b)->relative);
}

static kpack_error_t walk_tree(const char *root, const struct prefixes *prefixes,
			       struct outside *out, struct kpackx_error *why)
{
	struct tree_list *list = tree_list_open(root);
	kpack_error_t err = KPACK_SUCCESS;
	struct tree_item e;

	while (!err && tree_list_next(list, &e))
		err = visit_path(list, &e, prefixes, out, why);
	tree_list_close(list);
	if (out->count)
		qsort(out->items, out->count, sizeof(*out->items), by_path);
	return err;
}

kpack_error_t outside_open(const char *root, const struct prefixes *prefixes,
			   struct outside *out, struct kpackx_error *why)
{
	kpack_error_t err;

	*out = (struct outside){0};
	if (!prefixes->manifest)
		return KPACK_SUCCESS;
	err = walk_tree(root, prefixes, out, why);
	if (err)
		outside_close(out);
	return err;
}

void outside_close(struct outside *o)
{
	for (size_t i = 0; i < o->count; i++) {
		free(o->items[i].path);
		free(o->items[i].left);
	}
	free(o->items);
	*o = (struct outside){0};
}

kpack_error_t outside_copy(struct outside *o, struct tree_write *w,
			   struct kpackx_error *why)
{
	for (size_t i = 0; i < o->count; i++) {
		struct outside_entry *e = &o->items[i];

		KP_TRY(tree_write_entry(w, e->relative, e->path, &e->id, &e->left, why));
	}
	return KPACK_SUCCESS;
}
