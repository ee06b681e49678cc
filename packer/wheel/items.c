/* SPDX-License-Identifier: MIT */
/*
 * Which file goes into which wheel.  Each file of an input goes into one wheel, or its bytes are
 * in archives; archives go into device wheels.  Several inputs, builds of one version for
 * different GPUs, become one list, with each path once: common files must be equal, device
 * code is taken from all.
 *
 *	a member, as it is		the host wheel, or the device wheel of its target
 *	a binary with device code	the host wheel, converted
 *	a file of a kernel database	the device wheel of its target or family; or packed, in none
 *	an archive with device code	the device wheel of its target
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/archive/naming.h"
#include "core/base/order.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/trees/join.h"
#include "split.h"

void wheel_items_fini(struct wheel_items *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].path);
		free(list->items[i].disk);
	}
	free(list->items);
	*list = (struct wheel_items){0};
}

/* --- the items of a source ----------------------------------------------------------- */

kpack_error_t wheel_items_add(struct wheel_items *list, struct wheel_source *source,
			      struct device_wheels *devices, struct kpackx_error *why)
{
	const struct partition *partition = &source->partition;
	const struct packing *packing = &source->packing;
	KP_AUTO_FREE const struct device_wheel **of_tree =
		xcalloc(partition->count, sizeof(struct device_wheel *));

	for (size_t i = 0; i < partition->count; i++) {
		const struct output_tree *tree = &partition->items[i];

		if (i != PARTITION_GENERIC && (tree->n_entries || tree->n_archives))
			KP_TRY(device_wheels_find(devices, tree, &of_tree[i], why));
		for (size_t k = 0; k < tree->n_archives; k++) {
			xgrow(&list->items, list->count, &list->cap,
			      sizeof(*list->items));
			list->items[list->count++] = (struct wheel_item){
				.kind = WHEEL_ITEM_ARCHIVE,
				.path = xasprintf(
					"%s%s" KP_ARCHIVES_DIR "/%s", source->overlay,
					*source->overlay ? "/" : "", tree->archives[k]),
				.source = source,
				.disk = xasprintf("%s/" KP_ARCHIVES_DIR "/%s",
						  source->root, tree->archives[k]),
				.mode = 0644,
				.device = of_tree[i],
			};
		}
	}
	for (size_t i = 0; i < source->in->count; i++) {
		const struct wheel_member *m = &source->in->members[i];
		const char *info = kp_path_below(m->path, source->info.dir);
		const char *inside = wheel_source_inside(source, m->path);
		struct wheel_item item = {.kind = WHEEL_ITEM_MEMBER,
					  .source = source,
					  .member = i,
					  .mode = m->mode,
					  .last = info};
		size_t entry, tree;

		/* texts.c makes METADATA, wheel_out.c RECORD; signatures of the old one are wrong */
		if (m->directory || record_is_own(m->path, source->info.dir) ||
		    (info && strcmp(info, "METADATA") == 0))
			continue;
		if (inside && !info) {
			if (!scan_find(&packing->scan, kp_span_str(inside), &entry))
				return kp_fail(why, KPACK_ERROR_IO_ERROR,
					       "%s: it disappeared", m->path);
			tree = partition->tree_of[entry];
			/* its bytes are in archives; nothing else may get lost */
			if (tree == PARTITION_NONE &&
			    packing->dispositions.items[entry].fate == FATE_PACKED)
				continue;
			if (tree == PARTITION_NONE)
				return kp_fail(why, KPACK_ERROR_IO_ERROR,
					       "%s would be in no wheel", m->path);
			item.device = of_tree[tree];
			item.database = packing->scan.entries[entry].database;
			if (packing->dispositions.items[entry].fate == FATE_CONVERTED) {
				item.kind = WHEEL_ITEM_BINARY;
				item.disk = xstrdup(packing->scan.entries[entry].path);
			}
		}
		/* the temporary wheel of a directory only stores: compress the file itself */
		if (!item.disk && source->unpacked)
			item.disk = xasprintf("%s/%s", source->tree, m->path);
		item.path = xstrdup(m->path);
		xgrow(&list->items, list->count, &list->cap, sizeof(*list->items));
		list->items[list->count++] = item;
	}
	return KPACK_SUCCESS;
}

/* --- joining ------------------------------------------------------------------------- */

kpack_error_t wheel_items_check(const struct wheel_source *sources, size_t n,
				const struct wheel_source *prefer,
				struct kpackx_error *why)
{
	const struct wheel_source *a = &sources[0];
	char first[WHEEL_NAME_MAX + 1], other[WHEEL_NAME_MAX + 1];

	for (const struct wheel_source *b = a + 1; b < sources + n; b++) {
		const struct wheel_name *x = &a->name, *y = &b->name;
		const char *what = NULL;

		if (!dist_name_normal(a->info.name, '-', first) ||
		    !dist_name_normal(b->info.name, '-', other) ||
		    strcmp(first, other) != 0)
			what = "different distributions";
		else if (strcmp(a->info.version, b->info.version) != 0)
			what = "different versions";
		else if (strcmp(a->info.dir, b->info.dir) != 0)
			what = "different .dist-info directories";
		else if (strcmp(x->build, y->build) != 0 ||
			 strcmp(x->python, y->python) != 0 ||
			 strcmp(x->abi, y->abi) != 0 ||
			 strcmp(x->platform, y->platform) != 0)
			what = "different tags";
		else if (!prefer &&
			 !kp_span_eq(a->info.metadata.text, b->info.metadata.text))
			what = "different METADATA; --prefer settles it";
		if (what)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s and %s are not builds of the same wheel: %s",
				       a->path, b->path, what);
	}
	return KPACK_SUCCESS;
}

#define SETTLED "; --prefer WHEEL settles which one is taken"

/* The items with one path. */
struct same {
	struct wheel_item *items;
	size_t count;
	size_t chosen; /* the one that wins where they differ */
	const struct wheel_source *prefer;
	char *file; /* for a new file, which would replace the item's */
};

static kpack_error_t refuse_clash(const struct same *g, size_t one, size_t other,
				  const char *what, const char *end,
				  struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "%s: %s in %s and %s%s",
		       g->items[0].path, what, g->items[one].source->path,
		       g->items[other].source->path, end);
}

/* Report an entry that two archives have differently; messages name the wheels. */
static void report_clash(void *arg, const struct merge_clash *clash)
{
	const struct same *g = arg;
	const char *first = clash->first, *second = clash->second;

	for (size_t i = 0; i < g->count; i++) {
		if (strcmp(g->items[i].disk, clash->first) == 0)
			first = g->items[i].source->path;
		if (strcmp(g->items[i].disk, clash->second) == 0)
			second = g->items[i].source->path;
	}
	report_error(second, "%.*s for %.*s: %s than in %s", (int)clash->key.size,
		     (const char *)clash->key.data, (int)clash->arch.size,
		     (const char *)clash->arch.data, clash->what, first);
}

/* Join the items of G, each of another one of the N SOURCES, into the chosen one. */
static kpack_error_t join_same(struct same *g, const struct wheel_source *sources,
			       size_t n, const char *dir, struct kpackx_error *why)
{
	static const char *const texts[] = {
		[JOIN_NOTHING] = "no device code",
		[JOIN_DIFFERS] = "different host code",
		[JOIN_WRAPPERS] = "device code that does not match",
		[JOIN_KINDS] = "one with and one without device code,",
	};
	const struct wheel_item *first = &g->items[0];
	KP_AUTO_FREE char **paths = xcalloc(g->count, sizeof(*paths));
	KP_AUTO_FREE unsigned *prefer = xcalloc(g->count, sizeof(*prefer));
	KP_AUTO(join) join = {0};
	kpack_error_t err;

	if (!first->device && !first->database && first->kind != WHEEL_ITEM_ARCHIVE &&
	    !g->prefer) {
		/* a file for the host alone must be in every source; both are in order */
		for (size_t i = 0; i < n; i++)
			if (i >= g->count || g->items[i].source != &sources[i])
				return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
					       "%s: is in %s and not in %s" SETTLED,
					       first->path, first->source->path,
					       sources[i].path);
	}
	for (size_t i = 1; i < g->count; i++) {
		if (g->items[i].source == g->items[i - 1].source)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s would be in two wheels", first->path);
		if (g->items[i].kind != first->kind)
			return refuse_clash(g, 0, i,
					    "one with and one without device code,", "",
					    why);
		if (g->items[i].device != first->device)
			return refuse_clash(g, 0, i, "different architectures", "", why);
	}
	if (g->count == 1)
		return KPACK_SUCCESS;
	for (size_t i = 0; i < g->count; i++) {
		paths[i] = g->items[i].disk;
		prefer[i] = g->items[i].source == g->prefer;
	}
	if (first->kind == WHEEL_ITEM_MEMBER) {
		/* by the hashes that RECORD has and unpacking has compared */
		for (size_t i = 1; i < g->count && !g->prefer; i++)
			if (memcmp(first->source->digests[first->member],
				   g->items[i].source->digests[g->items[i].member],
				   32) != 0)
				return refuse_clash(g, 0, i, "different bytes", SETTLED,
						    why);
		return KPACK_SUCCESS;
	}
	if (first->kind == WHEEL_ITEM_ARCHIVE) {
		/* archives with one name have the same targets, built by two of the inputs */
		err = join_to_archive(paths, prefer, g->count, dir, kp_path_name(g->file),
				      report_clash, g, why);
		if (err)
			return kp_fail_prefix(why, err, "%s", first->path);
	} else {
		/*
		 * Converted binaries differ in their markers alone if the host code is the same: the
		 * chosen one gets a marker with the search paths of all, and with it finds the code of
		 * all.
		 */
		KP_TRY(join_look(paths, g->count, g->chosen, &join, why));
		if (join.relation != JOIN_SAME &&
		    !(join.relation == JOIN_DIFFERS && g->prefer)) {
			KP_AUTO_FREE char *end =
				xasprintf("%s%s%s", *join.text ? ": " : "", join.text,
					  join.relation == JOIN_DIFFERS ? SETTLED : "");

			return refuse_clash(g, g->chosen, join.other,
					    texts[join.relation], end, why);
		}
		if (join.same_marker)
			return KPACK_SUCCESS;
		KP_TRY(join_write(paths[g->chosen], g->file, &join, why));
	}
	/* the chosen item gets the new file */
	free(g->items[g->chosen].disk);
	g->items[g->chosen].disk = g->file;
	g->file = NULL;
	return KPACK_SUCCESS;
}

kpack_error_t wheel_items_join(struct wheel_items *list,
			       const struct wheel_source *sources, size_t n,
			       const struct wheel_source *prefer, const char *dir,
			       struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	size_t kept = 0, end;

	kp_sort(list->items, list->count, KP_BY_NUMBER(struct wheel_item, last),
		KP_BY_TEXT(struct wheel_item, path),
		KP_BY_NUMBER(struct wheel_item, source)); /* all in one array */
	for (size_t i = 0; !err && i < list->count; i = end) {
		struct same g = {.items = list->items + i, .prefer = prefer};
		struct wheel_item first;

		for (end = i; end < list->count &&
			      strcmp(list->items[end].path, list->items[i].path) == 0;
		     end++)
			if (list->items[end].source == prefer)
				g.chosen = end - i;
		g.count = end - i;
		g.file = xasprintf("%s/%zu", dir, i);
		err = join_same(&g, sources, n, dir, why);
		free(g.file);
		/* the chosen one moves to the front; those behind are freed below */
		first = list->items[kept];
		list->items[kept++] = list->items[i + g.chosen];
		list->items[i + g.chosen] = first;
	}
	while (!err && list->count > kept) {
		list->count--;
		free(list->items[list->count].path);
		free(list->items[list->count].disk);
	}
	/*
	 * All output wheels are installed into one directory: a path that is a file in one input
	 * must not be a directory in another.
	 */
	for (size_t i = 0; !err && i < list->count; i++) {
		const struct wheel_item *item = &list->items[i], *above;
		KP_AUTO_FREE char *parent = xstrdup(item->path);
		struct wheel_item probe = {.path = parent};

		for (char *slash; !err && (slash = strrchr(parent, '/'));) {
			*slash = '\0';
			/* what is called as .dist-info is, but a file, is not in it */
			probe.last = item->last && strchr(parent, '/');
			above = kp_find(list->items, list->count, &probe,
					KP_BY_NUMBER(struct wheel_item, last),
					KP_BY_TEXT(struct wheel_item, path));
			if (above)
				err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
					      "%s: a file in %s and a directory in %s",
					      above->path, above->source->path,
					      item->source->path);
		}
	}
	return err;
}
