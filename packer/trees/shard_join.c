/* SPDX-License-Identifier: MIT */
#include "shard_join.h"
#include <stdio.h>
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "packer/cli/options.h"
#include "packer/files/below.h"
#include "packer/files/leftovers.h"
#include "packer/pack/write_tree.h"
#include "shard_files.h"
#include "shard_host.h"
#include "core/archive/naming.h"

/* --- what belongs together ----------------------------------------------------------- */

static kpack_error_t fail_differing(const struct shard_part *a,
				    const struct shard_part *b, const char *what,
				    const char *x, const char *y,
				    struct kpackx_error *why)
{
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
		       "%s and %s are of different runs: %s: %s, and %s", a->dir, b->dir,
		       what, x, y);
}

/* Returns the bytes of the option that OPTIONS begin with. */
static int option_size(const char *options)
{
	const char *end = strstr(options, " --");

	return end ? (int)(end - options) : (int)strlen(options);
}

/* Name the first option that differs: with all of them it would be hard to see. */
static kpack_error_t fail_differing_option(const struct shard_part *a,
					   const struct shard_part *b,
					   struct kpackx_error *why)
{
	const char *x = a->record.options, *y = b->record.options;

	while (*x && option_size(x) == option_size(y) &&
	       strncmp(x, y, (size_t)option_size(x)) == 0) {
		int n = option_size(x);

		x += n + (x[n] == ' ');
		y += n + (y[n] == ' ');
	}
	return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
		       "%s and %s are of different runs: options: %.*s, and %.*s", a->dir,
		       b->dir, *x ? option_size(x) : 4, *x ? x : "none",
		       *y ? option_size(y) : 4, *y ? y : "none");
}

static kpack_error_t check_pair(const struct shard_part *a, const struct shard_part *b,
				struct kpackx_error *why)
{
	const struct shard_record *x = &a->record, *y = &b->record;
	char of_x[16], of_y[16];

	if (strcmp(x->version, y->version) != 0)
		return fail_differing(a, b, "kpack's version", x->version, y->version,
				      why);
	snprintf(of_x, sizeof(of_x), "%u", x->shard.count);
	snprintf(of_y, sizeof(of_y), "%u", y->shard.count);
	if (x->shard.count != y->shard.count)
		return fail_differing(a, b, "the number of shards", of_x, of_y, why);
	if (strcmp(x->options, y->options) != 0)
		return fail_differing_option(a, b, why);
	if (memcmp(x->plan, y->plan, sizeof(x->plan)) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s and %s are of different runs: INPUT was another, or "
			       "changed meanwhile",
			       a->dir, b->dir);
	if (x->shard.index == y->shard.index &&
	    memcmp(x->hash, y->hash, sizeof(x->hash)) != 0)
		return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			       "%s and %s are both shard %u/%u, and differ", a->dir,
			       b->dir, x->shard.index, x->shard.count);
	return KPACK_SUCCESS;
}

static int by_index(const void *a, const void *b)
{
	const struct shard_part *x = a, *y = b;

	return KP_ORDER(x->record.shard.index, y->record.shard.index);
}

/* Drop the second copy of a part. */
static void drop_repeated(struct shard_join *j)
{
	size_t n = 0;

	for (size_t i = 0; i < j->n_parts; i++) {
		if (n && by_index(&j->parts[n - 1], &j->parts[i]) == 0)
			shard_part_close(&j->parts[i]);
		else
			j->parts[n++] = j->parts[i];
	}
	j->n_parts = n;
}

static kpack_error_t check_missing(const struct shard_join *j, struct kpackx_error *why)
{
	for (unsigned i = 0; i < j->parts[0].record.shard.count; i++)
		if (i >= j->n_parts || j->parts[i].record.shard.index != i + 1)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "shard %u/%u is missing", i + 1,
				       j->parts[0].record.shard.count);
	return KPACK_SUCCESS;
}

static kpack_error_t check_parts(struct shard_join *j, struct kpackx_error *why)
{
	for (size_t i = 1; i < j->n_parts; i++)
		KP_TRY(check_pair(&j->parts[0], &j->parts[i], why));
	qsort(j->parts, j->n_parts, sizeof(*j->parts), by_index);
	for (size_t i = 1; i < j->n_parts; i++)
		KP_TRY(check_pair(&j->parts[i - 1], &j->parts[i], why));
	drop_repeated(j);
	KP_TRY(check_missing(j, why));
	for (size_t i = 0; i < j->n_parts; i++)
		KP_TRY(shard_part_check(&j->parts[i], why));
	return KPACK_SUCCESS;
}

kpack_error_t shard_join_open(char *const *dirs, size_t n, struct shard_join *out,
			      struct kpackx_error *why)
{
	*out = (struct shard_join){.parts = xcalloc(n, sizeof(*out->parts))};
	for (size_t i = 0; i < n; i++) {
		out->n_parts++;
		KP_TRY(shard_part_open(dirs[i], &out->parts[i], why));
	}
	KP_TRY(check_parts(out, why));
	return replay_init(out->parts, out->n_parts, &out->replay, why);
}

void shard_join_close(struct shard_join *join)
{
	tree_write_end(&join->tree);
	for (size_t i = 0; i < join->n_left; i++) {
		free(join->left[i].path);
		free(join->left[i].why);
	}
	free(join->left);
	archive_set_close(join->set);
	replay_fini(&join->replay);
	for (size_t i = 0; i < join->n_parts; i++)
		shard_part_close(&join->parts[i]);
	free(join->parts);
	*join = (struct shard_join){0};
}

kpack_error_t shard_join_check(const struct shard_join *join, const char *out,
			       struct kpackx_error *why)
{
	for (size_t i = 0; i < join->n_parts; i++) {
		kpack_error_t err = output_check(join->parts[i].dir, out, why);

		if (err == KPACK_ERROR_INVALID_ARGUMENT)
			return kp_fail(why, err,
				       "%s and %s: the same, or one is inside the other",
				       out, join->parts[i].dir);
		if (err)
			return kp_fail_prefix(why, err, "%s", join->parts[i].dir);
	}
	return KPACK_SUCCESS;
}

/* --- archives ------------------------------------------------------------------------ */

/* Whether the first part has archives that INPUT had. */
static bool has_inherited(const struct shard_part *first)
{
	const struct shard_record *r = &first->record;

	for (size_t i = 0; i < r->n_items; i++)
		if (r->items[i].kind == SHARD_OWN &&
		    strncmp(r->items[i].path, SHARD_INHERITED "/",
			    strlen(SHARD_INHERITED "/")) == 0)
			return true;
	return false;
}

static kpack_error_t open_set(struct shard_join *j, const char *dir, const char *inherit,
			      struct kpackx_error *why)
{
	const struct shard_record *r = &j->parts[0].record;
	struct archive_set_options where = {
		.dir = dir,
		.group = r->group,
		.scheme = r->scheme,
		.level = r->level,
		.jobs = option_jobs(),
		.volume_size = r->volume_size,
		.families = &r->families,
		.inherit = inherit,
		.stores = replay_stores,
		.stores_arg = &j->replay,
	};

	return archive_set_open(&where, &j->set, why);
}

static kpack_error_t write_archives(struct shard_join *j, const char *dir,
				    const char *inherit, struct progress *progress,
				    struct kpackx_error *why)
{
	KP_TRY(below_mkdirs(dir, 0777, why));
	KP_TRY(open_set(j, dir, inherit, why));
	KP_TRY(replay_run(&j->replay, j->set, progress, why));
	KP_TRY(archive_set_publish(j->set, why));
	return leftovers_remove(dir, "", why);
}

kpack_error_t shard_join_archives(struct shard_join *join, const char *out,
				  struct progress *progress, struct kpackx_error *why)
{
	const struct shard_part *first = &join->parts[0];
	char *dir, *inherit = NULL;
	kpack_error_t err;

	tree_write_begin(&join->tree, out, false);
	KP_TRY(first->record.archives_only ? below_make_root(out, 0777, why)
					   : tree_write_root(&join->tree, why));
	if (join->replay.n_binaries == 0 && !has_inherited(first))
		return KPACK_SUCCESS;
	dir = xasprintf("%s/" KP_ARCHIVES_DIR, out);
	if (has_inherited(first))
		inherit = xasprintf("%s/" SHARD_INHERITED, first->own);
	err = write_archives(join, dir, inherit, progress, why);
	free(dir);
	free(inherit);
	return err;
}

/* --- the tree ------------------------------------------------------------------------ */

static char *path_in_part(const struct shard_part *part, const char *path)
{
	return xasprintf(*path ? "%s/%s" : "%s", part->dir, path);
}

/* Make the directories, which are the same in all parts. */
static kpack_error_t make_directories(const struct shard_part *first,
				      struct tree_write *w, struct kpackx_error *why)
{
	for (size_t i = 0; i < first->record.n_items; i++) {
		const struct shard_item *item = &first->record.items[i];
		const struct directory_state state = {
			.mode = (mode_t)item->mode & 07777,
			.mtime = {(time_t)item->seconds, (long)item->nanoseconds}};
		kpack_error_t err;
		char *from;

		if (item->kind != SHARD_DIRECTORY)
			continue;
		from = path_in_part(first, item->path);
		err = tree_write_directory(w, item->path, from, &state, why);
		free(from);
		KP_TRY(err);
	}
	return KPACK_SUCCESS;
}

/* A binary that is in another volume than its shard stored it in. */
struct moved {
	const struct shard_converted *converted;
	const struct replayed *replayed;
};

struct moves {
	struct moved *items; /* by path */
	size_t count;
};

static int by_number(const void *key, const void *item)
{
	const uint32_t *number = key;
	const struct replayed *r = item;

	return KP_ORDER(*number, r->binary->number);
}

/* Convert a binary again, because its marker must name the new volume. */
static kpack_error_t convert_again(const struct moved *m, const char *out,
				   struct kpackx_error *why)
{
	const struct replayed *r = m->replayed;
	const struct shard_converted *c = m->converted;
	char *host = xasprintf("%s/" SHARD_HOST, r->part->own, c->number);
	char *from = xasprintf("%s/%s", r->part->dir, c->path);
	char *to = xasprintf("%s/%s", out, c->path);
	kpack_error_t err = shard_host_convert(host, from, to, r->part->record.group,
					       r->binary->volume, r->volume, why);

	if (err)
		kp_fail_prefix(why, err, "%s", to);
	free(host);
	free(from);
	free(to);
	return err;
}

static int by_path(const void *a, const void *b)
{
	const struct moved *x = a, *y = b;

	return strcmp(x->converted->path, y->converted->path);
}

static struct moves find_moves(const struct shard_join *j, const struct shard_part *part)
{
	size_t n = part->record.n_converted;
	struct moves out = {.items = xcalloc(n, sizeof(*out.items))};

	for (size_t i = 0; i < n; i++) {
		const struct shard_converted *c = &part->record.converted[i];
		const struct replayed *r =
			bsearch(&c->number, j->replay.binaries, j->replay.n_binaries,
				sizeof(*r), by_number);

		if (r && r->part == part && r->volume != r->binary->volume)
			out.items[out.count++] = (struct moved){c, r};
	}
	qsort(out.items, out.count, sizeof(*out.items), by_path);
	return out;
}

static const struct moved *find_moved(const struct moves *moves, const char *path)
{
	struct shard_converted named = {.path = (char *)path};
	const struct moved key = {.converted = &named};

	return bsearch(&key, moves->items, moves->count, sizeof(key), by_path);
}

/* Takes over WHY. */
static void add_left(struct shard_join *join, const struct shard_item *item,
		     const char *path, char *why)
{
	xgrow(&join->left, join->n_left, &join->left_cap, sizeof(*join->left));
	join->left[join->n_left++] = (struct shard_left){item, xstrdup(path), why};
}

/* Why the item that LINK is a link to was left out; NULL: it was not. */
static const char *find_left(const struct shard_join *join, const struct shard_item *link)
{
	for (size_t i = 0; i < join->n_left; i++)
		if (strcmp(join->left[i].item->path, link->first) == 0)
			return join->left[i].why;
	return NULL;
}

static kpack_error_t write_link(struct shard_join *join, const struct shard_item *item,
				const char *path, bool moved, struct kpackx_error *why)
{
	const char *left = find_left(join, item);

	if (!left)
		return tree_write_link(&join->tree, item->path, item->first,
				       moved ? NULL : path, &item->seen, why);
	add_left(join, item, path, xstrdup(left));
	return KPACK_SUCCESS;
}

static kpack_error_t write_file(struct shard_join *join, const struct shard_item *item,
				const char *path, struct kpackx_error *why)
{
	char *left;

	KP_TRY(tree_write_file(&join->tree, item->path, path, &item->seen, &left, why));
	if (left)
		add_left(join, item, path, left);
	return KPACK_SUCCESS;
}

/*
 * Write an item, but no directory.  A moved binary is never in the tree with the wrong
 * marker, not even for a moment.
 */
static kpack_error_t write_item(struct shard_join *join, const struct shard_part *part,
				const struct shard_item *item, const struct moves *moves,
				struct kpackx_error *why)
{
	struct tree_write *w = &join->tree;
	const struct moved *m = NULL;
	kpack_error_t err;
	char *from;

	if (item->kind == SHARD_ABSENT)
		return tree_write_remove(w, item->path, why);
	if (item->kind == SHARD_FILE || item->kind == SHARD_LINK)
		m = find_moved(moves,
			       item->kind == SHARD_LINK ? item->first : item->path);
	if (item->kind == SHARD_FILE && m)
		return convert_again(m, w->root, why);
	from = path_in_part(part, item->path);
	err = item->kind == SHARD_LINK ? write_link(join, item, from, m != NULL, why)
				       : write_file(join, item, from, why);
	free(from);
	return err;
}

/* Write the files of a part, or the further LINKS to them. */
static kpack_error_t write_items(struct shard_join *join, const struct shard_part *part,
				 const struct moves *moves, bool links,
				 struct kpackx_error *why)
{
	for (size_t i = 0; i < part->record.n_items; i++) {
		const struct shard_item *item = &part->record.items[i];

		if (item->kind != SHARD_DIRECTORY && item->kind != SHARD_OWN &&
		    (item->kind == SHARD_LINK) == links)
			KP_TRY(write_item(join, part, item, moves, why));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t write_part(struct shard_join *join, const struct shard_part *part,
				struct kpackx_error *why)
{
	struct moves moves = find_moves(join, part);
	kpack_error_t err = write_items(join, part, &moves, false, why);

	if (!err)
		err = write_items(join, part, &moves, true, why);
	free(moves.items);
	return err;
}

kpack_error_t shard_join_tree(struct shard_join *join, struct kpackx_error *why)
{
	KP_TRY(tree_write_lock(&join->tree, why));
	KP_TRY(make_directories(&join->parts[0], &join->tree, why));
	for (size_t i = 0; i < join->n_parts; i++)
		KP_TRY(write_part(join, &join->parts[i], why));
	return tree_write_finish(&join->tree, why);
}
