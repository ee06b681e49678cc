/* SPDX-License-Identifier: MIT */
#include "joined.h"
#include <stdlib.h>
#include "core/base/text.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "packer/archives/merge.h"

/* The archives of one name. */
struct same_name {
	char **paths;
	struct kpack_archive **archives;
	struct merge_source *sources;
	size_t count;
};

void split_prefix_keys(struct split_prefix *i)
{
	struct scan *scan = &i->packing.scan;

	for (size_t k = 0; k < scan->n_inputs && *i->prefix->path; k++) {
		struct input *in = scan->inputs[k];
		char *key;

		if (in->kind == INPUT_DATABASE)
			continue;
		key = xasprintf("%s/%s", i->prefix->path, in->key);
		if (!kp_path_ok(kp_span_str(key))) {
			report_error(in->path, "its path cannot be a key");
			scan->n_faults++;
		}
		free(in->key);
		in->key = key;
	}
	scan_sort(scan);
}

static bool wrote_archive(const struct split_prefix *i, const char *part,
			  const char *name)
{
	size_t number = partition_find(&i->parts, part);
	const struct output_tree *p =
		number == PARTITION_NONE ? NULL : &i->parts.items[number];

	for (size_t k = 0; p && k < p->n_archives; k++)
		if (strcmp(p->archives[k], name) == 0)
			return true;
	return false;
}

const struct split_prefix *split_archive_home(const struct split *s,
					      const struct split_prefix *i,
					      const char *part, const char *name,
					      bool *several)
{
	const struct split_prefix *home = s->joined ? s->items : i;
	size_t n = 0;

	while (home < i && !wrote_archive(home, part, name))
		home++;
	for (size_t k = 0; k < s->n_items; k++)
		n += wrote_archive(&s->items[k], part, name);
	if (several)
		*several = s->joined && n > 1;
	return home;
}

/* --- joining ----------------------------------------------------------------------- */

static char *path_of(const struct split *s, const struct split_tree *tree,
		     const struct split_prefix *i, const char *name)
{
	char *relative = split_archive_path(i, name);
	char *path = split_path(s, tree, i->prefix->path, relative);

	free(relative);
	return path;
}

static kpack_error_t open_archives(const struct split *s, const char *part,
				   const char *name, struct same_name *all,
				   struct kpackx_error *why)
{
	const struct split_tree *generic = split_tree_of(s, KP_ARCH_GENERIC);

	all->paths = xcalloc(s->n_items, sizeof(*all->paths));
	all->archives = xcalloc(s->n_items, sizeof(*all->archives));
	all->sources = xcalloc(s->n_items, sizeof(*all->sources));
	for (size_t i = 0; i < s->n_items; i++) {
		size_t n = all->count;
		kpack_error_t err;

		if (!wrote_archive(&s->items[i], part, name))
			continue;
		all->paths[n] = path_of(s, generic, &s->items[i], name);
		all->count++;
		err = below_archive_open(all->paths[n], &all->archives[n], why);
		if (err)
			return kp_fail_prefix(why, err, "%s", all->paths[n]);
		all->sources[n].archive = all->archives[n];
	}
	return KPACK_SUCCESS;
}

static void same_name_fini(struct same_name *all)
{
	for (size_t i = 0; i < all->count; i++) {
		kp_archive_close(all->archives[i]);
		free(all->paths[i]);
	}
	free(all->sources);
	free(all->archives);
	free(all->paths);
}

static void report_clash(void *arg, const struct merge_clash *clash)
{
	(void)arg;
	report_error(clash->second, "%.*s for %.*s: %s than in %s", (int)clash->key.size,
		     (const char *)clash->key.data, (int)clash->arch.size,
		     (const char *)clash->arch.data, clash->what, clash->first);
}

static kpack_error_t write_joined(const struct same_name *all, const char *path,
				  struct kpackx_error *why)
{
	struct kp_span own = kp_archive_family(all->archives[0]);
	char *family = xstrndup(own.size ? (const char *)own.data : "", own.size);
	const char *slash = strrchr(path, '/');
	char *dir = xstrndup(path, (size_t)(slash - path));
	struct merge_options options = {
		.family = family, .lazy = true, .clash = report_clash};
	struct merge_plan *plan = NULL;
	struct kp_writer *writer = NULL;
	kpack_error_t err =
		merge_plan_new(all->sources, all->count, &options, &plan, why);

	if (!err)
		err = merge_plan_write(plan, dir, slash + 1, &writer, why);
	if (!err)
		err = kp_writer_publish(writer, why);
	kp_writer_close(writer);
	merge_plan_free(plan);
	free(dir);
	free(family);
	return err;
}

/* Remove the archives that were joined, but for the one that PATH replaced. */
static kpack_error_t remove_joined(const struct same_name *all, const char *path,
				   struct kpackx_error *why)
{
	for (size_t i = 0; i < all->count; i++)
		if (strcmp(all->paths[i], path) != 0 && below_unlink(all->paths[i]) < 0)
			return below_fail(why, "%s: cannot remove", all->paths[i]);
	return KPACK_SUCCESS;
}

kpack_error_t split_join_archives(const struct split *s, const struct split_prefix *home,
				  const struct split_tree *tree, const char *part,
				  const char *name, struct kpackx_error *why)
{
	struct same_name all = {0};
	char *path = path_of(s, tree, home, name);
	kpack_error_t err = open_archives(s, part, name, &all, why);

	if (!err)
		err = write_joined(&all, path, why);
	if (err)
		kp_fail_prefix(why, err,
			       "%s: cannot join the archives of all prefixes; "
			       "--keys prefix keeps them apart",
			       name);
	else
		err = remove_joined(&all, path, why);
	same_name_fini(&all);
	free(path);
	return err;
}
