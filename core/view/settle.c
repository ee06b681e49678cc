/* SPDX-License-Identifier: MIT */
/*
 * The end of building a view: sort the names, so that equal ones are neighbours; keep the first of
 * them, a directory or the first archive's, and note those that lose; number the files.
 */
#include <stdio.h>
#include <stdlib.h>
#include "builder.h"

/* Sorted by text; directories before files; then in the order of adding. */
struct sort_item {
	struct kp_view_entry_name name;
	uint32_t position;
};

static int cmp_item(const void *a, const void *b, void *arg)
{
	const struct sort_item *x = a, *y = b;
	const struct kp_view *v = arg;
	bool x_dir = kp_node_kind(x->name.node) == KP_VIEW_DIR;
	bool y_dir = kp_node_kind(y->name.node) == KP_VIEW_DIR;
	int c = x->name.text == y->name.text ? 0
					     : kp_span_cmp(kp_view_text(v, x->name.text),
							   kp_view_text(v, y->name.text));

	if (c)
		return c;
	if (x_dir != y_dir)
		return KP_ORDER(y_dir, x_dir);
	return KP_ORDER(x->position, y->position);
}

/*
 * The path of a name, "/"-separated, in BUF; a path that is too long is cut at the front.
 */
static struct kp_span path_of(const struct kp_view_builder *b, uint32_t dir,
			      uint32_t text, uint8_t *buf, size_t cap)
{
	size_t at = cap;

	for (;;) {
		struct kp_span s = kp_view_text(b->v, text);
		if (s.size + 1 > at)
			break;
		at -= s.size;
		memcpy(buf + at, s.data, s.size);
		if (dir == 0)
			break;
		buf[--at] = '/';
		text = b->open_dirs[dir].text;
		dir = b->v->dirs[dir].parent;
	}
	return (struct kp_span){buf + at, cap - at};
}

/* Note that the name LOST in DIR is not shown, as KEPT is equal; not if their contents agree. */
static void note_clash(struct kp_view_builder *b, uint32_t dir,
		       const struct kp_view_entry_name *kept,
		       const struct kp_view_entry_name *lost)
{
	bool is_dir = kp_node_kind(kept->node) == KP_VIEW_DIR;
	struct kpack_archive *x = NULL, *y;
	uint8_t buf[KP_NAME_MAX + 512];
	char *reason = NULL;
	size_t in_x, in_y;
	int n;

	if (kept->node == lost->node ||
	    (!is_dir && kp_node_number(kept->node) == kp_node_number(lost->node)))
		return;
	y = kp_view_entry(b->v, kp_node_number(lost->node), &in_y);
	if (!is_dir) {
		/*
		 * Files whose archives have other readers, or that are stored differently or in
		 * chunks, are not linked, because the hash alone is not enough then; but which of
		 * the two is shown does not matter.
		 */
		x = kp_view_entry(b->v, kp_node_number(kept->node), &in_x);
		if (kp_view_same_bytes(x, in_x, y, in_y))
			return;
	}
	n = asprintf(&reason,
		     is_dir ? "%s; the file of %s is not shown"
			    : "%s comes first; other content of %s is not shown",
		     is_dir ? "a directory has this name" : kp_archive_path(x),
		     kp_archive_path(y));
	kp_view_conflict(b, path_of(b, dir, kept->text, buf, sizeof(buf)),
			 n < 0 ? "exists twice" : reason);
	if (n >= 0)
		free(reason);
}

bool kp_view_settle(struct kp_view_builder *b)
{
	struct kp_view *v = b->v;
	uint32_t at = 0;

	/* sort the names by directory: count those of each, and put each at its place */
	v->names = kp_large_alloc((b->n_pending + 1) * sizeof(*v->names));
	if (!v->names)
		return kp_view_no_memory(b);
	for (size_t i = 0; i < b->n_pending; i++)
		v->dirs[b->pending[i].parent].count++;
	for (uint32_t d = 0; d < v->n_dirs; d++) {
		v->dirs[d].first = at;
		at += v->dirs[d].count;
		v->dirs[d].count = 0;
	}
	for (size_t i = 0; i < b->n_pending; i++) {
		struct kp_view_dir *dir = &v->dirs[b->pending[i].parent];

		v->names[dir->first + dir->count++] = b->pending[i].name;
	}
	free(b->pending);
	b->pending = NULL;
	/* sort the names of each directory, and keep the first of equal ones */
	for (uint32_t d = 0; d < v->n_dirs; d++) {
		struct kp_view_dir *dir = &v->dirs[d];
		struct kp_view_entry_name *n = v->names + dir->first;
		KP_AUTO_FREE struct sort_item *items = NULL;
		uint32_t sorted = 1, kept = 0;

		/* nearly all are sorted: keys come so from the table of contents */
		while (sorted < dir->count &&
		       kp_span_cmp(kp_view_text(v, n[sorted - 1].text),
				   kp_view_text(v, n[sorted].text)) < 0)
			sorted++;
		if (sorted >= dir->count)
			continue;
		items = malloc(dir->count * sizeof(*items));
		if (!items)
			return kp_view_no_memory(b);
		for (uint32_t i = 0; i < dir->count; i++)
			items[i] = (struct sort_item){n[i], i};
		qsort_r(items, dir->count, sizeof(*items), cmp_item, v);
		for (uint32_t i = 0; i < dir->count; i++) {
			n[kept] = items[i].name;
			/* some texts are stored more than once */
			if (kept && (n[kept - 1].text == n[kept].text ||
				     kp_span_eq(kp_view_text(v, n[kept - 1].text),
						kp_view_text(v, n[kept].text))))
				note_clash(b, d, &n[kept - 1], &n[kept]);
			else
				kept++;
		}
		dir->count = kept;
	}
	/* names are final: count those of each file, and mix its first path into its id */
	for (uint32_t d = 0; d < v->n_dirs; d++)
		for (uint32_t i = 0; i < v->dirs[d].count; i++) {
			const struct kp_view_entry_name *n =
				&v->names[v->dirs[d].first + i];
			struct kp_view_file *f;

			if (kp_node_kind(n->node) == KP_VIEW_DIR)
				continue;
			f = &v->files[kp_node_number(n->node)];
			if (f->nlink++ == 0)
				f->id ^= kp_view_child_id(v->dirs[d].id,
							  kp_view_text(v, n->text));
		}
	v->conflict_texts = malloc((v->conflicts.kept + 1) * sizeof(*v->conflict_texts));
	if (!v->conflict_texts)
		return kp_view_no_memory(b);
	for (size_t i = 0; i < v->conflicts.kept; i++)
		v->conflict_texts[i] = v->conflicts.items[i].text;
	return true;
}
