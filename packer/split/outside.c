/* SPDX-License-Identifier: MIT */
#include "outside.h"
#include <stdlib.h>
#include "packer/base/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/copy_or_leave.h"
#include "packer/files/tree_list.h"

/* --- listing ----------------------------------------------------------------------- */

static void add_entry(struct outside *out, const struct tree_item *e)
{
	char *path = xstrdup(e->path);

	xgrow(&out->items, out->count, &out->cap, sizeof(*out->items));
	out->items[out->count++] = (struct outside_entry){
		.path = path,
		.relative = path + (e->rest - e->path),
		.st = e->st,
		.link = SIZE_MAX,
	};
}

static kpack_error_t visit_path(struct tree_list *list, const struct tree_item *e,
				const struct prefixes *prefixes, struct outside *out,
				struct kpackx_error *why)
{
	if (e->kind == TREE_FAULT)
		return kp_fail_errno(why, e->error, "%s", e->path);
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

static int by_inode(const void *a, const void *b, void *arg)
{
	const struct outside_entry *items = arg;
	size_t i = *(const size_t *)a, k = *(const size_t *)b;
	const struct stat *x = &items[i].st, *y = &items[k].st;

	if (x->st_dev != y->st_dev)
		return x->st_dev < y->st_dev ? -1 : 1;
	if (x->st_ino != y->st_ino)
		return x->st_ino < y->st_ino ? -1 : 1;
	return (i > k) - (i < k);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static void find_links(struct outside *out)
{
	size_t *links = xmalloc(out->count * sizeof(*links)), n = 0, first = 0;

	for (size_t i = 0; i < out->count; i++)
		if (out->items[i].st.st_nlink > 1 && !S_ISDIR(out->items[i].st.st_mode))
			links[n++] = i;
	qsort_r(links, n, sizeof(*links), by_inode, out->items);
	for (size_t i = 1; i < n; i++) {
		if (same_file(&out->items[links[i]].st, &out->items[links[first]].st))
			out->items[links[i]].link = links[first];
		else
			first = i;
	}
	free(links);
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
	else
		find_links(out);
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

/* --- copying ----------------------------------------------------------------------- */

static kpack_error_t copy_hard_link(const struct outside *o, struct outside_entry *e,
				    const char *root, const char *to,
				    struct kpackx_error *why)
{
	const struct outside_entry *first = &o->items[e->link];
	kpack_error_t err;
	char *from;

	if (first->left) {
		e->left = xstrdup(first->left);
		return KPACK_SUCCESS;
	}
	from = xasprintf("%s/%s", root, first->relative);
	err = copy_link_or_seen(from, e->path, &e->st, to, why);
	free(from);
	return err;
}

static kpack_error_t copy_entry(const struct outside *o, struct outside_entry *e,
				const char *root, struct kpackx_error *why)
{
	char *to = xasprintf("%s/%s", root, e->relative);
	kpack_error_t err;

	if (S_ISDIR(e->st.st_mode))
		err = copy_directory(to, why);
	else if (e->link != SIZE_MAX)
		err = copy_hard_link(o, e, root, to, why);
	else
		err = copy_or_leave(e->path, &e->st, to, &e->left, why);
	free(to);
	return err ? kp_fail_prefix(why, err, "%s", e->path) : KPACK_SUCCESS;
}

kpack_error_t outside_copy(struct outside *o, const char *to, struct kpackx_error *why)
{
	for (size_t i = 0; i < o->count; i++)
		KP_TRY(copy_entry(o, &o->items[i], to, why));
	return KPACK_SUCCESS;
}

static kpack_error_t finish_directory(const char *from, const char *root,
				      const char *relative, struct kpackx_error *why)
{
	char *to = xasprintf("%s/%s", root, relative);
	kpack_error_t err = KPACK_SUCCESS;
	struct stat st;

	if (below_lstat(to, &st) == 0 && S_ISDIR(st.st_mode))
		err = copy_directory_attributes(from, to, why);
	free(to);
	return err ? kp_fail_prefix(why, err, "%s", from) : KPACK_SUCCESS;
}

kpack_error_t outside_finish(const struct outside *o, const char *root, const char *to,
			     struct kpackx_error *why)
{
	for (size_t i = o->count; i-- > 0;)
		if (S_ISDIR(o->items[i].st.st_mode))
			KP_TRY(finish_directory(o->items[i].path, to,
						o->items[i].relative, why));
	return o->count ? finish_directory(root, to, "", why) : KPACK_SUCCESS;
}
