/* SPDX-License-Identifier: MIT */
/*
 * A list of files passes by, item by item.  Whether the tree that it is in was split at all is
 * known for certain from its manifest or from the trees beside it, or else only at its end,
 * when a converted binary was seen or not; so fat binaries are kept until then.
 */
#include "generic_tree.h"
#include <dirent.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "core/base/alloc.h"
#include "core/base/text.h"
#include "core/target/target.h"
#include "artifact.h"

/* --- where one is ------------------------------------------------------------------ */

/* Whether DIR has a tree for a GPU of the component whose generic tree is NAME. */
static bool has_sibling(const char *dir, const char *name)
{
	size_t size = artifact_component_size(name);
	struct dirent **names = NULL;
	int n = below_scandir(dir, &names, NULL);
	bool has = false;

	for (int i = 0; i < n; i++) {
		const char *other = names[i]->d_name;

		has |= artifact_component_size(other) == size &&
		       strncmp(name, other, size) == 0 && strcmp(name, other) != 0;
		free(names[i]);
	}
	free(names);
	return has;
}

/*
 * Begin at the directory ITEM if that is a generic tree, by its name.  The root of the list may
 * be given as ".", or through a link, and has its name in its real path.
 */
static void begin_tree(struct generic_tree *g, const struct tree_item *item)
{
	KP_AUTO_FREE char *real = item->level ? NULL : below_real(item->path);
	KP_AUTO_FREE char *path = xstrdup(real ? real : item->path);
	KP_AUTO_FREE char *parent = xstrdup(path);
	KP_AUTO_FREE char *manifest = xasprintf("%s/" ARTIFACT_MANIFEST, item->path);
	const char *name = basename(path);
	size_t size = artifact_component_size(name);
	struct stat st;

	if (!size || strcmp(name + size, "_" KP_ARCH_GENERIC) != 0)
		return;
	g->path = xstrdup(item->path);
	g->certain = (below_lstat(manifest, &st) == 0 && S_ISREG(st.st_mode)) ||
		     has_sibling(dirname(parent), name);
	g->converted = false;
}

/* --- what is in it ----------------------------------------------------------------- */

void generic_tree_item(struct generic_tree *g, const struct tree_item *item)
{
	bool end = item->kind == TREE_DIR_END || item->kind == TREE_FAULT;

	if (item->kind == TREE_DIR && !g->path && item->level <= 1)
		begin_tree(g, item);
	if (!end || !g->path || strcmp(g->path, item->path) != 0)
		return;
	/* only now it is known whether a binary of the tree is converted */
	for (size_t i = 0; i < g->n_fat; i++) {
		if (g->certain || g->converted)
			g->fault(g->arg, g->fat[i],
				 "device code is left in the generic tree of a split");
		free(g->fat[i]);
	}
	g->n_fat = 0;
	free(g->path);
	g->path = NULL;
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

void generic_tree_check(const char *root, generic_tree_fn *fault, void *arg)
{
	struct generic_tree g = {.fault = fault, .arg = arg};
	struct tree_list *list = tree_list_open(root);
	struct tree_item item;

	while (tree_list_next(list, &item)) {
		struct binary b;

		generic_tree_item(&g, &item);
		if (!g.path || item.kind != TREE_OTHER || !S_ISREG(item.st.st_mode) ||
		    binary_open(item.path, &b, NULL))
			continue;
		generic_tree_binary(&g, &b);
		binary_close(&b);
	}
	tree_list_close(list);
	generic_tree_fini(&g);
}
