/* SPDX-License-Identifier: MIT */
#include "walk.h"
#include "core/base/bounds.h"

struct walk {
	const struct kp_view *view;
	walk_visit *visit;
	void *user;
	uint8_t path[KP_NAME_MAX +
		     512]; /* toc/ and a file's name around the longest key */
};

static bool walk_dir(struct walk *w, uint32_t dir, size_t size);

/* The first SIZE bytes of the path are the path of the name's directory, with a slash. */
static bool walk_name(struct walk *w, uint32_t number, size_t size)
{
	struct kp_view_name name = kp_view_name(w->view, number);

	if (name.text.size + 1 > sizeof(w->path) - size)
		return true;
	memcpy(w->path + size, name.text.data, name.text.size);
	size += name.text.size;
	if (name.kind != KP_VIEW_DIR)
		return w->visit(w->user, (struct kp_span){w->path, size}, number);
	w->path[size++] = '/';
	return walk_dir(w, name.index, size);
}

/* Recursive; the depth is bounded, because the view bounds the length of paths. */
static bool walk_dir(struct walk *w, uint32_t dir, size_t size)
{
	const struct kp_view_dir *d = kp_view_dir(w->view, dir);

	for (uint32_t i = 0; i < d->count; i++)
		if (!walk_name(w, d->first + i, size))
			return false;
	return true;
}

bool walk_files(const struct kp_view *v, const struct tree *t, walk_visit *visit,
		void *user)
{
	struct walk w = {.view = v, .visit = visit, .user = user};

	return walk_dir(&w, tree_root(t).index, 0);
}
