/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "path_owners.h"

struct path_owners {
	const struct edition *edition;
	struct kp_view_options select;
	uint64_t *holders; /* by name: 0, or (archive << 32 | entry) + 1 */
	uint32_t names;

	/* The last directory and architecture.  Entries are sorted by key, so the next
	 * one often has the same. */
	uint8_t dir_path[KP_NAME_MAX + 512];
	size_t dir_size;
	uint32_t dir;
	bool dir_found;
	const uint8_t *arch;
	bool selected;
};

static uint32_t name_count(const struct kp_view *v)
{
	uint32_t most = 0;

	for (uint32_t d = 0; d < kp_view_dir_count(v); d++) {
		const struct kp_view_dir *dir = kp_view_dir(v, d);

		if (dir->count && dir->first + dir->count > most)
			most = dir->first + dir->count;
	}
	return most;
}

bool path_owners_selects(struct path_owners *c, struct kp_span arch)
{
	if (c->arch != arch.data) {
		c->arch = arch.data;
		c->selected = kp_view_selects(&c->select, arch);
	}
	return c->selected;
}

size_t path_owners_paths(const struct path_owners *c, const struct kpack_archive *a,
			 size_t entry, struct kp_entry_path out[KP_ENTRY_PATHS])
{
	return kp_entry_paths(a, entry, &c->select, out);
}

/* Find the directory at PATH, unless it was the last one. */
static bool find_dir(struct path_owners *c, struct kp_span path)
{
	if (kp_span_eq(path, (struct kp_span){c->dir_path, c->dir_size}))
		return c->dir_found;
	memcpy(c->dir_path, path.data, path.size);
	c->dir_size = path.size;
	c->dir_found = kp_view_find_dir(c->edition->view, path, &c->dir);
	return c->dir_found;
}

bool path_owners_find(struct path_owners *c, struct kp_span path, uint32_t *name)
{
	size_t cut = path.size;

	while (cut && path.data[cut - 1] != '/')
		cut--;
	if (cut > sizeof(c->dir_path))
		return false;
	return find_dir(c, kp_span_head(path, cut)) &&
	       kp_view_lookup(c->edition->view, c->dir, kp_span_tail(path, cut), name);
}

/*
 * Give the name at P to HOLDER.  The first of several entries with a path wins, as in the
 * view.
 */
static void claim_path(struct path_owners *c, const struct kp_entry_path *p,
		       uint64_t holder)
{
	uint32_t name;

	if (p->fault[0] || !path_owners_find(c, p->text, &name) || c->holders[name])
		return;
	if (kp_view_name(c->edition->view, name).kind != KP_VIEW_DIR)
		c->holders[name] = holder + 1;
}

static void claim_archive(struct path_owners *c, size_t archive)
{
	const struct kpack_archive *a = c->edition->archives[archive];
	struct kp_entry_path paths[KP_ENTRY_PATHS];
	size_t n = kp_archive_entry_count(a);

	for (size_t entry = 0; entry < n; entry++) {
		struct kp_entry_info info;
		size_t count;

		kp_archive_entry(a, entry, &info);
		if (!path_owners_selects(c, info.arch))
			continue;
		count = path_owners_paths(c, a, entry, paths);
		for (size_t i = 0; i < count; i++)
			claim_path(c, &paths[i], (uint64_t)archive << 32 | entry);
	}
}

struct path_owners *path_owners_new(const struct edition *e,
				    const struct kp_choice *arches)
{
	struct path_owners *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->edition = e;
	c->select = (struct kp_view_options){.select = arches, .bundles = e->bundles};
	c->names = name_count(e->view);
	c->dir_found = true; /* the root, whose path is empty */
	c->holders = calloc((size_t)c->names + 1, sizeof(*c->holders));
	if (!c->holders) {
		path_owners_free(c);
		return NULL;
	}
	for (size_t i = 0; i < e->holdings.count; i++)
		claim_archive(c, i);
	return c;
}

void path_owners_free(struct path_owners *c)
{
	if (!c)
		return;
	free(c->holders);
	free(c);
}

bool path_owners_holder(const struct path_owners *c, uint32_t name, struct claim *out)
{
	uint64_t holder = name < c->names ? c->holders[name] : 0;

	if (!holder)
		return false;
	out->archive = c->edition->archives[(holder - 1) >> 32];
	out->entry = (size_t)((holder - 1) & UINT32_MAX);
	return true;
}
