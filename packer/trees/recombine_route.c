/* SPDX-License-Identifier: MIT */
/*
 * Choose the output tree of each file.  All files of a shard's tree for one GPU go to the
 * group of that GPU, regardless of their names.  In a tree for several GPUs, each archive
 * and each file of a kernel database goes to the group of its own GPUs.
 */
#include <stdio.h>
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/gpu/hierarchy.h"
#include "recombine_internal.h"
#include "core/target/target.h"
#include "core/base/text.h"
#include "core/archive/naming.h"

/* The groups, and the architectures in groups, that a file or tree is for. */
struct targets {
	bool *groups, *arches;
	size_t n_groups, n_arches;
};

static void targets_init(const struct recombine_component *c, struct targets *t)
{
	size_t groups = c->args->config->n_groups;

	*t = (struct targets){.groups = xcalloc(groups, sizeof(bool)),
			      .arches = xcalloc(c->n_arches, sizeof(bool)),
			      .n_groups = groups,
			      .n_arches = c->n_arches};
}

static void targets_fini(struct targets *t)
{
	free(t->groups);
	free(t->arches);
}

static void targets_clear(struct targets *t)
{
	memset(t->groups, 0, t->n_groups * sizeof(bool));
	memset(t->arches, 0, t->n_arches * sizeof(bool));
}

/* --- GPUs and groups --------------------------------------------------------------- */

/* True if NAME is for the target WANTED.  The first match in add_target's table counts. */
typedef bool matches(const char *wanted, const char *name);

static bool same_target(const char *wanted, const char *name)
{
	char a[KP_TARGET_TEXT_MAX], b[KP_TARGET_TEXT_MAX];

	kp_target_canonical(kp_span_str(wanted), a);
	kp_target_canonical(kp_span_str(name), b);
	return strcmp(a, b) == 0;
}

static bool same_processor(const char *wanted, const char *name)
{
	struct kp_target a, b;

	return kp_target_parse(kp_span_str(wanted), &a, NULL) == KPACK_SUCCESS &&
	       kp_target_parse(kp_span_str(name), &b, NULL) == KPACK_SUCCESS &&
	       strcmp(a.processor, b.processor) == 0;
}

/* True if NAME is a generic target, like gfx11-generic, that WANTED runs. */
static bool is_member(const char *wanted, const char *name)
{
	struct kp_target a, b;
	const char *generic;

	if (kp_target_parse(kp_span_str(wanted), &a, NULL) ||
	    kp_target_parse(kp_span_str(name), &b, NULL))
		return false;
	generic = kp_processor_generic(kp_span_str(a.processor));
	return generic && strcmp(generic, b.processor) == 0;
}

/* True if NAME is a family, like gfx110X or gfx12_0, that contains WANTED. */
static bool is_of_family(const char *wanted, const char *name)
{
	const char *group = gpu_group_name(kp_span_str(name));

	return group && gpu_group_has(group, kp_span_str(wanted));
}

static bool add_matching(const struct recombine_component *c, const char *name,
			 matches *match, struct targets *t)
{
	const struct recombine_config *config = c->args->config;
	size_t number = 0;
	bool any = false;

	for (size_t i = 0; i < config->n_groups; i++)
		for (size_t j = 0; j < config->groups[i].n_arches; j++, number++) {
			if (!match(config->groups[i].arches[j], name))
				continue;
			t->groups[i] = t->arches[number] = any = true;
		}
	return any;
}

static void add_target(const struct recombine_component *c, const char *name,
		       struct targets *t)
{
	static matches *const table[] = {same_target, same_processor, is_member,
					 is_of_family};

	for (size_t i = 0; i < KP_COUNT(table); i++)
		if (add_matching(c, name, table[i], t))
			return;
}

static void mark_delivered(struct recombine_component *c, const struct targets *t)
{
	for (size_t i = 0; i < t->n_arches; i++)
		c->delivered[i] |= t->arches[i];
}

/* The only group of T; a file for several groups goes into the generic tree. */
static int dest_of(const struct targets *t)
{
	int dest = DEST_NONE;

	for (size_t i = 0; i < t->n_groups; i++) {
		if (t->groups[i] && dest != DEST_NONE)
			return DEST_GENERIC;
		if (t->groups[i])
			dest = (int)i;
	}
	return dest;
}

/* --- archives ---------------------------------------------------------------------- */

static bool is_archive(const struct shard_file *file)
{
	return S_ISREG(file->mode) && kp_is_archive_of_tree(file->path);
}

/*
 * True for AMD's former manifests of archives: they differ per shard and have no reader.
 */
static bool is_old_manifest(const struct shard_file *file)
{
	return kp_span_ends(kp_span_str(file->path), ".kpm") &&
	       strstr(file->path, KP_ARCHIVES_DIR "/");
}

static bool is_neutral(const struct kpack_archive *a)
{
	for (size_t i = 0; i < kp_archive_arch_count(a); i++)
		if (strcmp(kp_archive_arch(a, i), KP_ARCH_GENERIC) != 0)
			return false;
	return true;
}

static kpack_error_t open_archive(struct recombine_item *item, struct kpackx_error *why)
{
	char *path = recombine_path(item);
	kpack_error_t err = below_archive_open(path, &item->archive, why);

	if (err)
		kp_fail_prefix(why, err, "%s", path);
	free(path);
	return err;
}

static void add_archive(const struct recombine_component *c,
			const struct kpack_archive *a, struct targets *t)
{
	for (size_t i = 0; i < kp_archive_arch_count(a); i++)
		add_target(c, kp_archive_arch(a, i), t);
}

/* --- one tree of a shard ----------------------------------------------------------- */

/* The items of one tree of a shard. */
struct routed {
	struct recombine_component *c;
	struct recombine_item *items;
	size_t n;
	bool generic;
	struct library_found found;
	struct file_tree files;
};

static void add_to_files(struct routed *r, const struct recombine_item *item)
{
	struct file_tree_item file = {.path = item->file->path,
				      .size = item->file->size,
				      .mode = item->file->mode};

	if (!S_ISREG(item->file->mode))
		return;
	file.disk = recombine_path(item);
	file_tree_add(&r->files, &file);
	free(file.disk);
}

/* A damaged file belongs to no library; other commands report the damage. */
static void ignore_fault(void *arg, size_t file, const struct kpackx_error *why)
{
	(void)arg, (void)file, (void)why;
}

static kpack_error_t find_databases(struct routed *r, struct kpackx_error *why)
{
	size_t faults = 0;

	for (size_t i = 0; i < r->n; i++)
		add_to_files(r, &r->items[i]);
	file_tree_sort(&r->files);
	return library_find_all(r->c->libraries, &r->files, ignore_fault, NULL, &r->found,
				&faults, why);
}

static const struct library_object *object_of(const struct routed *r,
					      const struct recombine_item *item)
{
	size_t file;

	return file_tree_find(&r->files, kp_span_str(item->file->path), &file)
		       ? r->found.objects[file]
		       : NULL;
}

static void add_object(const struct recombine_component *c,
		       const struct library_object *o, struct targets *t)
{
	char target[KP_TARGET_TEXT_MAX];

	for (size_t i = 0; o && i < o->n_arches; i++) {
		library_object_target(o, i, target);
		if (strcmp(target, KP_ARCH_GENERIC) != 0)
			add_target(c, target, t);
	}
}

static kpack_error_t look_at_item(const struct routed *r, struct recombine_item *item,
				  struct kpackx_error *why)
{
	item->database = object_of(r, item) != NULL;
	item->dest = r->generic ? DEST_GENERIC : DEST_NONE;
	if (is_old_manifest(item->file))
		item->dest = DEST_DROPPED;
	return is_archive(item->file) ? open_archive(item, why) : KPACK_SUCCESS;
}

static void route_alone(struct routed *r, struct recombine_item *item, struct targets *t)
{
	char shown[512];

	targets_clear(t);
	if (item->archive)
		add_archive(r->c, item->archive, t);
	else
		add_object(r->c, object_of(r, item), t);
	mark_delivered(r->c, t);
	item->dest = dest_of(t);
	if (item->dest == DEST_GENERIC)
		recombine_note(
			r->c, "%s: several groups need it; it goes into the generic tree",
			recombine_shown(item, shown));
}

static void route_generic(struct routed *r, struct targets *t)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->items[i].archive && !is_neutral(r->items[i].archive))
			route_alone(r, &r->items[i], t);
}

/* Route all items of the tree to one group. */
static void route_tree(struct routed *r, int dest, struct targets *t)
{
	for (size_t i = 0; i < r->n; i++) {
		if (r->items[i].dest == DEST_DROPPED)
			continue;
		r->items[i].dest = dest;
		targets_clear(t);
		if (r->items[i].archive)
			add_archive(r->c, r->items[i].archive, t);
		mark_delivered(r->c, t);
	}
}

/* Route items that name no GPU like the rest of their tree. */
static void route_rest(struct routed *r, struct targets *all)
{
	int dest = dest_of(all);

	for (size_t i = 0; i < r->n; i++)
		if (r->items[i].dest == DEST_NONE)
			r->items[i].dest = dest;
}

static void route_family(struct routed *r, struct targets *t)
{
	struct targets all;

	targets_init(r->c, &all);
	for (size_t i = 0; i < r->n; i++) {
		if (r->items[i].dest == DEST_DROPPED)
			continue;
		route_alone(r, &r->items[i], t);
		for (size_t j = 0; j < t->n_groups; j++)
			all.groups[j] |= t->groups[j];
	}
	if (dest_of(&all) != DEST_NONE)
		route_rest(r, &all);
	targets_fini(&all);
}

/* True for the name of a GPU, with any stepping and features. */
static bool is_gpu(const char *name)
{
	struct kp_target t;

	return kp_target_parse(kp_span_str(name), &t, NULL) == KPACK_SUCCESS &&
	       kp_processor_by_name(kp_processor_model(kp_span_str(t.processor)));
}

/*
 * The group whose name is TARGET; NONE for a GPU's name, which is looked up in the
 * groups.
 */
static int named_group(const struct recombine_config *config, const char *target)
{
	if (is_gpu(target))
		return DEST_NONE;
	for (size_t i = 0; i < config->n_groups; i++)
		if (strcmp(config->groups[i].name, target) == 0)
			return (int)i;
	return DEST_NONE;
}

static void route_device(struct routed *r, const char *target, struct targets *t)
{
	int dest = named_group(r->c->args->config, target);

	if (dest == DEST_NONE) {
		add_target(r->c, target, t);
		dest = dest_of(t);
		if (dest >= 0 && r->n)
			mark_delivered(r->c, t);
	}
	if (dest < 0)
		route_family(r, t);
	else
		route_tree(r, dest, t);
}

static kpack_error_t route_items(struct routed *r, const struct shard_tree *tree,
				 struct kpackx_error *why)
{
	struct targets t;

	KP_TRY(find_databases(r, why));
	for (size_t i = 0; i < r->n; i++)
		KP_TRY(look_at_item(r, &r->items[i], why));
	targets_init(r->c, &t);
	if (r->generic)
		route_generic(r, &t);
	else
		route_device(r, tree->target, &t);
	targets_fini(&t);
	return KPACK_SUCCESS;
}

static kpack_error_t add_tree(struct recombine_component *c,
			      const struct shard_tree *tree, struct kpackx_error *why)
{
	struct routed r = {.c = c,
			   .items = c->items + c->n_items,
			   .n = tree->n_files,
			   .generic = strcmp(tree->target, KP_ARCH_GENERIC) == 0};
	kpack_error_t err;

	for (size_t i = 0; i < r.n; i++)
		r.items[i] = (struct recombine_item){
			.tree = tree,
			.file = &tree->files[i],
			.shard = shard_trees_number(c->trees, tree->shard),
		};
	c->n_items += r.n;
	err = route_items(&r, tree, why);
	library_found_fini(&r.found);
	file_tree_fini(&r.files);
	return err;
}

/* --- all of them ------------------------------------------------------------------- */

static void report_unwanted(struct recombine_component *c, const struct shard_tree *tree,
			    const struct recombine_item *items)
{
	size_t n = 0, first = 0;

	for (size_t i = tree->n_files; i-- > 0;)
		if (items[i].dest == DEST_NONE) {
			first = i;
			n++;
		}
	c->unwanted += n;
	if (n)
		report_error(tree->path,
			     "%zu files are for no group, the first %s; left out", n,
			     tree->files[first].path);
}

static void check_missing(struct recombine_component *c)
{
	const struct recombine_config *config = c->args->config;
	bool any = false;
	size_t number = 0;

	for (size_t i = 0; i < c->n_arches; i++)
		any |= c->delivered[i];
	for (size_t i = 0; any && i < config->n_groups; i++)
		for (size_t j = 0; j < config->groups[i].n_arches; j++) {
			const char *arch = config->groups[i].arches[j];

			if (c->delivered[number++])
				continue;
			if (config->error_on_missing)
				recombine_fault(c, "%s of group %s is in no shard", arch,
						config->groups[i].name);
			else
				recombine_note(c, "%s of group %s is in no shard", arch,
					       config->groups[i].name);
		}
}

kpack_error_t recombine_route(struct recombine_component *c, struct kpackx_error *why)
{
	size_t n = 0;

	for (size_t i = 0; i < c->trees->n_trees; i++)
		n += c->trees->trees[i].n_files;
	c->items = xcalloc(n, sizeof(*c->items));
	for (size_t i = 0; i < c->trees->n_trees; i++) {
		const struct shard_tree *tree = &c->trees->trees[i];
		const struct recombine_item *items = c->items + c->n_items;

		if (strcmp(tree->component, c->name) != 0)
			continue;
		KP_TRY(add_tree(c, tree, why));
		report_unwanted(c, tree, items);
	}
	check_missing(c);
	return KPACK_SUCCESS;
}
