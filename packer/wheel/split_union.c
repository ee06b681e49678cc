/* SPDX-License-Identifier: MIT */
#include "split_union.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/path.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/trees/join.h"
#include "packer/archives/merge.h"
#include "packer/cli/report.h"

/* --- checking that wheels can be joined -------------------------------------------- */

static kpack_error_t refuse_pair(const struct wheel_source *a,
				 const struct wheel_source *b, const char *what,
				 struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
		       "%s and %s are not builds of the same wheel: %s", a->path, b->path,
		       what);
}

static bool same_span(struct kp_span a, struct kp_span b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static kpack_error_t check_pair(const struct wheel_source *a,
				const struct wheel_source *b, bool preferred,
				struct kpackx_error *why)
{
	const struct wheel_name *x = &a->name, *y = &b->name;
	char dist_a[WHEEL_NAME_MAX + 1], dist_b[WHEEL_NAME_MAX + 1];

	if (!dist_name_normal(a->info.name, '-', dist_a) ||
	    !dist_name_normal(b->info.name, '-', dist_b) || strcmp(dist_a, dist_b) != 0)
		return refuse_pair(a, b, "different distributions", why);
	if (strcmp(a->info.version, b->info.version) != 0)
		return refuse_pair(a, b, "different versions", why);
	if (strcmp(a->info.dir, b->info.dir) != 0)
		return refuse_pair(a, b, "different .dist-info directories", why);
	if (strcmp(x->build, y->build) != 0 || strcmp(x->python, y->python) != 0 ||
	    strcmp(x->abi, y->abi) != 0 || strcmp(x->platform, y->platform) != 0)
		return refuse_pair(a, b, "different tags", why);
	if (!preferred && !same_span(a->info.metadata.text, b->info.metadata.text))
		return refuse_pair(a, b, "different METADATA; --prefer settles it", why);
	return KPACK_SUCCESS;
}

kpack_error_t wheel_union_check(const struct wheel_source *sources, size_t n,
				bool preferred, struct kpackx_error *why)
{
	for (size_t i = 1; i < n; i++)
		KP_TRY(check_pair(&sources[0], &sources[i], preferred, why));
	return KPACK_SUCCESS;
}

/* --- joining ----------------------------------------------------------------------- */

struct joiner {
	const struct wheel_source *sources;
	size_t n_sources;
	const struct wheel_source *prefer;
	const char *dir;
	size_t n_made; /* number of files in DIR */
};

/* The items with the same path. */
struct same {
	struct wheel_item *items;
	size_t count;
};

/* The index of the item that wins where they differ. */
static size_t chosen_of(const struct joiner *j, const struct same *g)
{
	for (size_t i = 0; i < g->count; i++)
		if (g->items[i].source == j->prefer)
			return i;
	return 0;
}

/* The path of a new file in the directory, which will replace the item's file. */
static char *new_file(struct joiner *j)
{
	return xasprintf("%s/%zu", j->dir, j->n_made++);
}

static kpack_error_t refuse_clash(const struct same *g, size_t a, size_t b,
				  const char *text, struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT, "%s: %s in %s and %s",
		       g->items[a].path, text, g->items[a].source->path,
		       g->items[b].source->path);
}

static kpack_error_t join_members(const struct joiner *j, const struct same *g,
				  size_t chosen, struct kpackx_error *why)
{
	const uint8_t *digest = g->items[chosen].source->digests[g->items[chosen].member];

	for (size_t i = 0; i < g->count && !j->prefer; i++)
		if (memcmp(digest, g->items[i].source->digests[g->items[i].member], 32))
			return refuse_clash(g, chosen, i, "different bytes", why);
	return KPACK_SUCCESS;
}

static kpack_error_t settle_binary(const struct joiner *j, const struct same *g,
				   size_t chosen, const struct join *join,
				   struct kpackx_error *why)
{
	static const char *const texts[] = {
		[JOIN_NOTHING] = "no device code",
		[JOIN_SAME] = NULL,
		[JOIN_DIFFERS] = "different host code",
		[JOIN_WRAPPERS] = "device code that does not match",
		[JOIN_KINDS] = "one with and one without device code,",
	};
	kpack_error_t err;

	if (join->relation == JOIN_SAME || (join->relation == JOIN_DIFFERS && j->prefer))
		return KPACK_SUCCESS;
	err = refuse_clash(g, chosen, join->other, texts[join->relation], why);
	return *join->text ? kp_fail_prefix(why, err, "%s", join->text) : err;
}

static kpack_error_t join_paths(struct joiner *j, struct same *g, size_t chosen,
				char *const *paths, struct kpackx_error *why)
{
	struct wheel_item *item = &g->items[chosen];
	struct join join = {0};
	kpack_error_t err = join_look(paths, g->count, chosen, &join, why);

	if (!err)
		err = settle_binary(j, g, chosen, &join, why);
	if (!err && !join.same_marker) {
		char *file = new_file(j);

		err = join_write(item->disk, file, &join.marker, why);
		free(item->disk);
		item->disk = file;
	}
	join_fini(&join);
	return err;
}

static kpack_error_t join_binaries(struct joiner *j, struct same *g, size_t chosen,
				   struct kpackx_error *why)
{
	char **paths = xmalloc(g->count * sizeof(*paths));
	kpack_error_t err;

	for (size_t i = 0; i < g->count; i++)
		paths[i] = g->items[i].disk;
	err = join_paths(j, g, chosen, paths, why);
	free(paths);
	return err;
}

/* --- archives ---------------------------------------------------------------------- */

static void close_sources(struct merge_source *sources, size_t n)
{
	for (size_t i = 0; i < n; i++)
		kp_archive_close((struct kpack_archive *)sources[i].archive);
	free(sources);
}

static kpack_error_t open_sources(const struct joiner *j, const struct same *g,
				  struct merge_source *out, struct kpackx_error *why)
{
	for (size_t i = 0; i < g->count; i++) {
		struct kpack_archive *a = NULL;

		KP_TRY(below_archive_open(g->items[i].disk, &a, why));
		out[i].archive = a;
		out[i].prefer = g->items[i].source == j->prefer;
	}
	return KPACK_SUCCESS;
}

/* The source wheel whose archive is at PATH. */
static const char *wheel_of(const struct same *g, const char *path)
{
	for (size_t i = 0; i < g->count; i++)
		if (strcmp(g->items[i].disk, path) == 0)
			return g->items[i].source->path;
	return path;
}

static void report_clash(void *arg, const struct merge_clash *clash)
{
	const struct same *g = arg;

	report_error(wheel_of(g, clash->second), "%.*s for %.*s: %s than in %s",
		     (int)clash->key.size, (const char *)clash->key.data,
		     (int)clash->arch.size, (const char *)clash->arch.data, clash->what,
		     wheel_of(g, clash->first));
}

/* The family that the archive states; "" if none.  The caller frees it. */
static char *family_of(const struct kpack_archive *a)
{
	struct kp_span family = kp_archive_family(a);

	return xstrndup(family.size ? (const char *)family.data : "", family.size);
}

static kpack_error_t merge_archives(const struct merge_source *sources, struct same *g,
				    const char *dir, const char *name,
				    struct kpackx_error *why)
{
	char *family = family_of(sources[0].archive);
	struct merge_options options = {
		.family = family, .clash = report_clash, .clash_arg = g};
	struct merge_plan *plan = NULL;
	struct kp_writer *writer = NULL;
	kpack_error_t err = merge_plan_new(sources, g->count, &options, &plan, why);

	if (!err)
		err = merge_plan_write(plan, dir, name, &writer, why);
	if (!err)
		err = kp_writer_publish(writer, why);
	kp_writer_close(writer);
	merge_plan_free(plan);
	free(family);
	return err;
}

static kpack_error_t join_archives(struct joiner *j, struct same *g, size_t chosen,
				   struct kpackx_error *why)
{
	struct merge_source *sources = xcalloc(g->count, sizeof(*sources));
	kpack_error_t err = open_sources(j, g, sources, why);
	char *file = new_file(j);

	if (!err)
		err = merge_archives(sources, g, j->dir, strrchr(file, '/') + 1, why);
	close_sources(sources, g->count);
	if (err) {
		free(file);
		return kp_fail_prefix(why, err, "%s", g->items[chosen].path);
	}
	free(g->items[chosen].disk);
	g->items[chosen].disk = file;
	return KPACK_SUCCESS;
}

/* --- one path ---------------------------------------------------------------------- */

/* A file for the host alone must be in every source. */
static kpack_error_t check_everywhere(const struct joiner *j, const struct same *g,
				      struct kpackx_error *why)
{
	const struct wheel_item *first = &g->items[0];

	if (first->device || first->database || first->kind == WHEEL_ITEM_ARCHIVE ||
	    j->prefer || g->count == j->n_sources)
		return KPACK_SUCCESS;
	for (size_t i = 0; i < j->n_sources; i++) {
		bool has = false;

		for (size_t k = 0; k < g->count; k++)
			has = has || g->items[k].source == &j->sources[i];
		if (!has)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "%s: is in %s and not in %s", first->path,
				       first->source->path, j->sources[i].path);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t check_kinds(const struct same *g, struct kpackx_error *why)
{
	for (size_t i = 1; i < g->count; i++) {
		if (g->items[i].kind != g->items[0].kind)
			return refuse_clash(g, 0, i,
					    "one with and one without device code,", why);
		if (g->items[i].device != g->items[0].device)
			return refuse_clash(g, 0, i, "different architectures", why);
	}
	return KPACK_SUCCESS;
}

static kpack_error_t join_same(struct joiner *j, struct same *g, size_t *chosen,
			       struct kpackx_error *why)
{
	*chosen = chosen_of(j, g);
	KP_TRY(check_everywhere(j, g, why));
	KP_TRY(check_kinds(g, why));
	if (g->count == 1)
		return KPACK_SUCCESS;
	switch (g->items[0].kind) {
	case WHEEL_ITEM_BINARY:
		return join_binaries(j, g, *chosen, why);
	case WHEEL_ITEM_ARCHIVE:
		return join_archives(j, g, *chosen, why);
	default:
		return join_members(j, g, *chosen, why);
	}
}

/* Sort a directory's files directly after a file with the directory's name. */
static int by_component(const void *a, const void *b)
{
	const char *x = (*(const struct wheel_item *const *)a)->path;
	const char *y = (*(const struct wheel_item *const *)b)->path;

	for (; *x && *x == *y; x++)
		y++;
	/* '/' is below all other characters, but for the end */
	return KP_ORDER(*x == '/' ? 1 : (unsigned char)*x * 2,
			*y == '/' ? 1 : (unsigned char)*y * 2);
}

/*
 * All output wheels are installed into one directory: a path that is a file in one input
 * must not be a directory in another.
 */
static kpack_error_t check_directories(const struct wheel_items *list,
				       struct kpackx_error *why)
{
	const struct wheel_item **sorted = xmalloc(list->count * sizeof(*sorted));
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < list->count; i++)
		sorted[i] = &list->items[i];
	qsort(sorted, list->count, sizeof(*sorted), by_component);
	for (size_t i = 1; i < list->count && !err; i++)
		if (kp_path_below(sorted[i]->path, sorted[i - 1]->path))
			err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				      "%s: a file in %s and a directory in %s",
				      sorted[i - 1]->path, sorted[i - 1]->source->path,
				      sorted[i]->source->path);
	free(sorted);
	return err;
}

static void swap_items(struct wheel_item *a, struct wheel_item *b)
{
	struct wheel_item c = *a;

	*a = *b;
	*b = c;
}

static size_t end_of(const struct wheel_items *list, size_t at)
{
	size_t end = at + 1;

	while (end < list->count &&
	       strcmp(list->items[end].path, list->items[at].path) == 0)
		end++;
	return end;
}

kpack_error_t wheel_union_join(struct wheel_items *list,
			       const struct wheel_source *sources, size_t n,
			       const struct wheel_source *prefer, const char *dir,
			       struct kpackx_error *why)
{
	struct joiner j = {
		.sources = sources, .n_sources = n, .prefer = prefer, .dir = dir};
	size_t kept = 0, end, chosen;

	for (size_t i = 0; i < list->count; i = end) {
		struct same g = {.items = list->items + i};

		end = end_of(list, i);
		g.count = end - i;
		KP_TRY(join_same(&j, &g, &chosen, why));
		swap_items(&list->items[kept++], &list->items[i + chosen]);
	}
	while (list->count > kept) {
		list->count--;
		free(list->items[list->count].path);
		free(list->items[list->count].disk);
	}
	return check_directories(list, why);
}
