/* SPDX-License-Identifier: MIT */
/*
 * The format of a manifest, and the rules for names, are described in artifact.h.  Manifests
 * come with builds, and their paths are walked: each must stay inside the tree, so links
 * on the way to a prefix are refused.
 */
#include "artifact.h"
#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/base/path.h"
#include "core/base/text.h"
#include "core/target/target.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"

/* Manifests are written by hand or by a build; these limits are far above real ones. */
enum { MANIFEST_MAX = 4 << 20, PREFIXES_MAX = 65536 };

/* --- manifests --------------------------------------------------------------------- */

/* What surrounds a name and does not belong to it. */
static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

kpack_error_t prefixes_parse(struct kp_span text, struct prefixes *out,
			     struct kpackx_error *why)
{
	size_t cap = 0;

	*out = (struct prefixes){.manifest = true};
	for (size_t number = 1; text.size; number++) {
		const uint8_t *end = memchr(text.data, '\n', text.size);
		size_t n = end ? (size_t)(end - text.data) : text.size;
		struct kp_span line = {text.data, n};
		const char *fault;
		char shown[200];

		n += end ? 1 : 0;
		text = (struct kp_span){text.data + n, text.size - n};
		while (line.size && is_blank(line.data[0]))
			line = (struct kp_span){line.data + 1, line.size - 1};
		while (line.size && is_blank(line.data[line.size - 1]))
			line.size--;
		while (line.size > 1 && line.data[line.size - 1] == '/')
			line.size--;
		if (!line.size)
			continue;
		fault = kp_path_fault(line);
		if (fault)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "line %zu: '%s': %s", number,
				       kp_text_escape(line, shown, sizeof(shown)), fault);
		if (out->count >= PREFIXES_MAX)
			return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				       "line %zu: more than %d prefixes", number,
				       PREFIXES_MAX);
		xgrow(&out->items, out->count, &cap, sizeof(*out->items));
		out->items[out->count++] = (struct prefix){
			.path = xstrndup((const char *)line.data, line.size)};
	}
	kp_sort(out->items, out->count, KP_BY_TEXT(struct prefix, path));
	return KPACK_SUCCESS;
}

bool prefixes_has(const struct prefixes *p, const char *path)
{
	struct prefix probe = {.path = (char *)path};

	return kp_find(p->items, p->count, &probe, KP_BY_TEXT(struct prefix, path)) !=
	       NULL;
}

kpack_error_t prefixes_list(const char *path, struct prefixes *out,
			    struct kpackx_error *why)
{
	kpack_error_t err;
	uint8_t *text;
	size_t size;

	*out = (struct prefixes){0};
	KP_TRY(below_file_load(path, MANIFEST_MAX, "the manifest", &text, &size, why));
	err = prefixes_parse((struct kp_span){text, size}, out, why);
	free(text);
	return err;
}

kpack_error_t prefixes_open(const char *root, bool required, struct prefixes *out,
			    struct kpackx_error *why)
{
	KP_AUTO_FREE char *path = xasprintf("%s/" ARTIFACT_MANIFEST, root);
	bool there;
	kpack_error_t err;
	struct stat st;

	*out = (struct prefixes){0};
	there = below_lstat(path, &st) == 0;
	if (!there && errno == ENOENT && !required) {
		out->items = xcalloc(1, sizeof(*out->items));
		out->items[out->count++].path = xstrdup("");
		return KPACK_SUCCESS;
	}
	err = there || errno == ENOENT ? prefixes_list(path, out, why)
				       : below_fail(why, "cannot look at it");
	if (!err && out->count == 0)
		err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "names no prefix");
	/* a file in two prefixes would be in the output twice */
	for (size_t i = 0; i < out->count && !err; i++) {
		char *inner = out->items[i].path;

		if (i && strcmp(out->items[i - 1].path, inner) == 0)
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				      "%s: is listed twice", inner);
		for (char *slash = inner; !err && (slash = strchr(slash, '/')); slash++) {
			KP_AUTO_FREE char *outer =
				xstrndup(inner, (size_t)(slash - inner));

			if (prefixes_has(out, outer))
				err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
					      "%s: is inside another prefix, %s", inner,
					      outer);
		}
	}
	for (size_t i = 0; i < out->count && !err; i++) {
		struct prefix *p = &out->items[i];
		KP_AUTO_FREE char *dir = xasprintf("%s/%s", root, p->path);
		char *inside = dir + strlen(root) + 1;

		/* no component leads out of the tree */
		for (char *end = inside; end && !err && !p->absent;) {
			end = strchr(end, '/');
			if (end)
				*end = '\0';
			p->absent = below_lstat(dir, &st) < 0;
			if (p->absent && errno != ENOENT)
				err = below_fail(why, "%s", inside);
			else if (!p->absent && !S_ISDIR(st.st_mode))
				err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s: %s",
					      inside,
					      S_ISLNK(st.st_mode) ? "is a symbolic link"
								  : "is not a directory");
			if (end)
				*end++ = '/';
		}
	}
	if (err) {
		prefixes_close(out);
		kp_fail_prefix(why, err, "%s", path);
	}
	return err;
}

void prefixes_close(struct prefixes *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->items[i].path);
	free(p->items);
	*p = (struct prefixes){0};
}

/* --- names and places -------------------------------------------------------------- */

size_t artifact_component_size(const char *name)
{
	size_t size = strlen(name), generic = strlen("_" KP_ARCH_GENERIC), last = 0;

	if (size > generic && strcmp(name + size - generic, "_" KP_ARCH_GENERIC) == 0)
		return size - generic;
	for (size_t i = 1; i + 4 < size; i++)
		if (strncmp(name + i, "_gfx", 4) == 0 && name[i + 4] >= '0' &&
		    name[i + 4] <= '9')
			last = i;
	return last;
}

void artifact_root_fini(struct artifact_root *a)
{
	prefixes_close(&a->prefixes);
	free(a->path);
	*a = (struct artifact_root){0};
}

void artifact_root_item(struct artifact_root *a, const struct tree_item *item)
{
	if (item->kind == TREE_DIR && !a->path && item->level <= 1) {
		if (!prefixes_open(item->path, true, &a->prefixes, NULL))
			a->path = xstrdup(item->path);
	} else if (item->kind != TREE_OTHER && item->kind != TREE_DIR && a->path &&
		   strcmp(a->path, item->path) == 0) {
		artifact_root_fini(a);
	}
}

const struct prefix *artifact_root_prefix(const struct artifact_root *a, const char *path,
					  const char *key, const char **rest)
{
	const char *relative = a->path ? kp_path_below(path, a->path) : NULL;

	for (size_t i = 0; relative && i < a->prefixes.count; i++) {
		const struct prefix *p = &a->prefixes.items[i];

		*rest = kp_path_below(relative, p->path);
		if (*rest && kp_path_below(key, p->path))
			return p;
	}
	return NULL;
}

/* --- generic trees ----------------------------------------------------------------- */

/*
 * A list of files passes by, item by item.  Whether the tree that it is in was split at all is
 * known for certain from its manifest or from the trees beside it, or else only at its end,
 * when a converted binary was seen or not; so fat binaries are kept until then.
 */

void generic_tree_item(struct generic_tree *g, const struct tree_item *item)
{
	bool end = item->kind == TREE_DIR_END || item->kind == TREE_FAULT;

	if (item->kind == TREE_DIR && !g->path && item->level <= 1) {
		/* the root of the list may be given as ".", or by a link: its real path has its name */
		KP_AUTO_FREE char *real = item->level ? NULL : below_real(item->path);
		KP_AUTO_FREE char *path = xstrdup(real ? real : item->path);
		KP_AUTO_FREE char *parent = xstrdup(path);
		KP_AUTO_FREE char *manifest =
			xasprintf("%s/" ARTIFACT_MANIFEST, item->path);
		const char *name = basename(path);
		size_t size = artifact_component_size(name);
		struct dirent **names = NULL;
		struct stat st;
		int n;

		if (!size || strcmp(name + size, "_" KP_ARCH_GENERIC) != 0)
			return;
		g->path = xstrdup(item->path);
		g->converted = false;
		g->certain = below_lstat(manifest, &st) == 0 && S_ISREG(st.st_mode);
		/* or there is a tree of the same component for a GPU beside it */
		n = below_scandir(dirname(parent), &names, NULL);
		for (int i = 0; i < n; i++) {
			const char *other = names[i]->d_name;

			g->certain |= artifact_component_size(other) == size &&
				      strncmp(name, other, size) == 0 &&
				      strcmp(name, other) != 0;
			free(names[i]);
		}
		free(names);
	}
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
	if (b->fat.kind != KP_FATBIN_HOST ||
	    !kp_path_ok(kp_span_str(b->path + strlen(g->path) + 1)))
		return;
	xgrow(&g->fat, g->n_fat, &g->fat_cap, sizeof(*g->fat));
	g->fat[g->n_fat++] = xstrdup(b->path);
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
