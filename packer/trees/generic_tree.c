/* SPDX-License-Identifier: MIT */
#include "generic_tree.h"
#include <dirent.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "core/base/text.h"
#include "core/target/target.h"
#include "artifact.h"

/* --- where one is ------------------------------------------------------------------ */

static bool is_generic_name(const char *name)
{
	size_t size = artifact_component_size(name);

	return size && strcmp(name + size, "_" KP_ARCH_GENERIC) == 0;
}

static bool has_manifest(const char *dir)
{
	char *path = xasprintf("%s/" ARTIFACT_MANIFEST, dir);
	struct stat st;
	bool has = below_lstat(path, &st) == 0 && S_ISREG(st.st_mode);

	free(path);
	return has;
}

/* Whether OTHER is the tree for a GPU of the component whose generic tree is NAME. */
static bool is_sibling(const char *name, const char *other)
{
	size_t size = artifact_component_size(name);

	return artifact_component_size(other) == size &&
	       strncmp(name, other, size) == 0 && strcmp(name, other) != 0;
}

static bool has_sibling(const char *dir, const char *name)
{
	struct dirent **names = NULL;
	int n = below_scandir(dir, &names, NULL);
	bool has = false;

	for (int i = 0; i < n; i++) {
		has |= is_sibling(name, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	return has;
}

/* Begin at the directory ITEM if that is a generic tree; the root may be given as ".". */
static void begin_tree(struct generic_tree *g, const struct tree_item *item)
{
	char *real = item->level ? NULL : below_real(item->path);
	char *path = xstrdup(real ? real : item->path), *parent = xstrdup(path);
	const char *name = basename(path);

	if (is_generic_name(name)) {
		g->path = xstrdup(item->path);
		g->certain =
			has_manifest(item->path) || has_sibling(dirname(parent), name);
		g->converted = false;
	}
	free(parent);
	free(path);
	free(real);
}

/* --- what is in it ----------------------------------------------------------------- */

static void end_tree(struct generic_tree *g)
{
	bool generic = g->certain || g->converted;

	for (size_t i = 0; i < g->n_fat; i++) {
		if (generic)
			g->fault(g->arg, g->fat[i],
				 "device code is left in the generic tree of a split");
		free(g->fat[i]);
	}
	g->n_fat = 0;
	free(g->path);
	g->path = NULL;
}

void generic_tree_item(struct generic_tree *g, const struct tree_item *item)
{
	bool end = item->kind == TREE_DIR_END || item->kind == TREE_FAULT;

	if (item->kind == TREE_DIR && !g->path && item->level <= 1)
		begin_tree(g, item);
	else if (end && g->path && strcmp(g->path, item->path) == 0)
		end_tree(g);
}

void generic_tree_binary(struct generic_tree *g, const struct binary *b)
{
	if (!g->path)
		return;
	g->converted |= b->fat.kind == KP_FATBIN_CONVERTED;
	/* a path that cannot be a key: kpack split left the file alone, and said so */
	if (b->fat.kind != KP_FATBIN_ELF ||
	    !kp_path_ok(kp_span_str(b->path + strlen(g->path) + 1)))
		return;
	xgrow(&g->fat, g->n_fat, &g->fat_cap, sizeof(*g->fat));
	g->fat[g->n_fat++] = xstrdup(b->path);
}

bool generic_tree_inside(const struct generic_tree *g)
{
	return g->path && g->certain;
}

void generic_tree_fini(struct generic_tree *g)
{
	for (size_t i = 0; i < g->n_fat; i++)
		free(g->fat[i]);
	free(g->fat);
	free(g->path);
	*g = (struct generic_tree){0};
}

/* --- a whole list ------------------------------------------------------------------ */

static void look_at(struct generic_tree *g, const struct tree_item *item)
{
	struct binary b;

	generic_tree_item(g, item);
	if (!g->path || item->kind != TREE_OTHER || !S_ISREG(item->st.st_mode) ||
	    binary_open(item->path, &b, NULL))
		return;
	generic_tree_binary(g, &b);
	binary_close(&b);
}

void generic_tree_check(const char *root, generic_tree_fn *fault, void *arg)
{
	struct generic_tree g = {.fault = fault, .arg = arg};
	struct tree_list *list = tree_list_open(root);
	struct tree_item item;

	while (tree_list_next(list, &item))
		look_at(&g, &item);
	tree_list_close(list);
	generic_tree_fini(&g);
}
