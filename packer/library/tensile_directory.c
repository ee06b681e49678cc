/* SPDX-License-Identifier: MIT */
#include "tensile_directory.h"
#include <stdlib.h>
#include <string.h>
#include "tensile_name.h"
#include "packer/cli/xalloc.h"
#include "arch_name.h"

/* --- the names of a directory ---------------------------------------------------------- */

/* A walk over the names in a directory that begin with a prefix. */
struct names {
	const struct file_tree *tree;
	struct kp_span dir; /* without '/' at its end; empty: the root */
	char *prefix;       /* of paths; on the heap */
	size_t next;
	struct kp_span name; /* points into the tree's paths */
	bool is_dir;
};

static struct names names_begin(const struct file_tree *tree, struct kp_span dir,
				const char *prefix)
{
	struct names n = {.tree = tree, .dir = dir};

	n.prefix = xasprintf("%.*s%s%s", (int)dir.size, (const char *)dir.data,
			     dir.size ? "/" : "", prefix);
	n.next = file_tree_from(tree, kp_span_str(n.prefix));
	return n;
}

/* The number of the first file after those of the directory that PATH begins with. */
static size_t after_dir(const struct names *n, const char *path, size_t size)
{
	char *end = xasprintf("%.*s%c", (int)size, path, '/' + 1);
	size_t next = file_tree_from(n->tree, kp_span_str(end));

	free(end);
	return next;
}

/* Move to the next name; false: there is no more. */
static bool names_next(struct names *n)
{
	size_t before = n->dir.size + (n->dir.size > 0);
	const char *path, *slash;

	if (n->next == n->tree->count ||
	    strncmp(n->tree->items[n->next].path, n->prefix, strlen(n->prefix)) != 0)
		return false;
	path = n->tree->items[n->next].path;
	slash = strchr(path + before, '/');
	n->is_dir = slash;
	n->name = kp_span_str(path + before);
	if (!slash) {
		n->next++;
		return true;
	}
	n->name.size = (size_t)(slash - path) - before;
	n->next = after_dir(n, path, (size_t)(slash - path));
	return true;
}

/* The path of the name, on the heap. */
static char *names_path(const struct names *n)
{
	return xasprintf("%.*s%s%.*s", (int)n->dir.size, (const char *)n->dir.data,
			 n->dir.size ? "/" : "", (int)n->name.size,
			 (const char *)n->name.data);
}

static void names_end(struct names *n)
{
	free(n->prefix);
}

/* Whether DIR has a file that ACCEPT accepts and whose name begins with PREFIX. */
static bool has_name(const struct file_tree *tree, struct kp_span dir, const char *prefix,
		     bool (*accept)(struct kp_span name))
{
	struct names n = names_begin(tree, dir, prefix);
	bool found = false;

	while (!found && names_next(&n))
		found = !n.is_dir && accept(n.name);
	names_end(&n);
	return found;
}

/* --- the names of Tensile -------------------------------------------------------------- */

static bool is_tensile(struct kp_span name)
{
	return strcmp(tensile_name_split(name).role, "file") != 0;
}

static bool is_any(struct kp_span name)
{
	(void)name;
	return true;
}

/* hipSPARSELt's problems say which matrix is sparse. */
static bool is_sparse(struct kp_span name)
{
	return memmem(name.data, name.size, "_SPA_", 5) ||
	       memmem(name.data, name.size, "_SPB_", 5);
}

/* Whether one of DIR's own files has a name that only Tensile gives. */
static bool is_marked(const struct file_tree *tree, struct kp_span dir)
{
	static const char *const marks[] = {"TensileLibrary", "TensileLiteLibrary",
					    "TensileManifest", "Kernels.so-", "extop_"};

	for (size_t i = 0; i < KP_COUNT(marks); i++)
		if (has_name(tree, dir, marks[i], is_tensile))
			return true;
	return false;
}

/* Call TEST for DIR and the directories of GPUs in it, until one is true. */
static bool any_of(const struct file_tree *tree, struct kp_span dir,
		   bool (*test)(const struct file_tree *tree, struct kp_span dir))
{
	bool found = test(tree, dir);
	char arch[KP_TARGET_TEXT_MAX];
	struct names n;

	if (found)
		return true;
	n = names_begin(tree, dir, "gfx");
	while (!found && names_next(&n)) {
		char *sub;

		if (!n.is_dir || !arch_of_directory(n.name, arch, NULL))
			continue;
		sub = names_path(&n);
		found = test(tree, kp_span_str(sub));
		free(sub);
	}
	names_end(&n);
	return found;
}

/* --- the library ----------------------------------------------------------------------- */

static bool is_lite(const struct file_tree *tree, struct kp_span dir)
{
	return has_name(tree, dir, "extop_", is_any) ||
	       has_name(tree, dir, "hipblaslt", is_any) ||
	       has_name(tree, dir, "hipsparselt", is_any) ||
	       has_name(tree, dir, "TensileLiteLibrary", is_any);
}

static bool is_sparse_lite(const struct file_tree *tree, struct kp_span dir)
{
	return has_name(tree, dir, "hipsparselt", is_any) ||
	       has_name(tree, dir, "TensileLibrary_", is_sparse);
}

/* The library that the last such component of DIR names; NULL: none. */
static const char *named_in(struct kp_span dir)
{
	static const char *const names[] = {"rocblas", "hipblaslt", "hipsparselt"};
	const char *found = NULL;
	size_t depth = path_depth(dir);

	for (size_t i = 0; i < depth; i++)
		for (size_t k = 0; k < KP_COUNT(names); k++)
			if (kp_span_is(path_component(dir, i), names[k]))
				found = names[k];
	return found;
}

static const char *library_of(const struct file_tree *tree, struct kp_span dir)
{
	const char *named = named_in(dir);

	if (named)
		return named;
	if (!any_of(tree, dir, is_lite))
		return "rocblas";
	return any_of(tree, dir, is_sparse_lite) ? "hipsparselt" : "hipblaslt";
}

/* --- the directory --------------------------------------------------------------------- */

/* The part of PATH before its last '/', or empty. */
static struct kp_span parent_of(struct kp_span path)
{
	const uint8_t *slash = path.size ? memrchr(path.data, '/', path.size) : NULL;

	return kp_span_head(path, slash ? (size_t)(slash - path.data) : 0);
}

static struct kp_span last_component(struct kp_span path)
{
	size_t n = parent_of(path).size;

	return kp_span_tail(path, n + (n > 0));
}

bool tensile_directory_has(const struct file_tree *tree, const char *path,
			   const char *library, struct kp_span *rest)
{
	struct kp_span dir = parent_of(kp_span_str(path));
	char arch[KP_TARGET_TEXT_MAX];

	if (arch_of_directory(last_component(dir), arch, NULL))
		dir = parent_of(dir);
	if (!is_tensile(path_name(path)) && !kp_span_is(last_component(dir), "library"))
		return false;
	if (!any_of(tree, dir, is_marked) || strcmp(library_of(tree, dir), library) != 0)
		return false;
	*rest = kp_span_str(path + dir.size + (dir.size > 0));
	return true;
}
