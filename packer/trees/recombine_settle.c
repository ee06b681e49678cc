/* SPDX-License-Identifier: MIT */
/*
 * Choose among files that would have the same path in an output tree, and the marker that
 * the chosen file gets.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/file.h"
#include "packer/archives/content.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "join.h"
#include "recombine_internal.h"
#include "core/target/target.h"

/* Items with the same path, in the order of shards. */
struct run {
	struct recombine_component *c;
	struct recombine_item *items;
	size_t n;
	size_t chosen;
	bool preferred; /* chosen by --prefer, which settles all clashes it can */
	char **paths;   /* to open them */
};

/* --- comparing --------------------------------------------------------------------- */

static bool same_target(const char *a, const char *b)
{
	char x[PATH_MAX], y[PATH_MAX];
	ssize_t n = below_readlink(a, x, sizeof(x)), m = below_readlink(b, y, sizeof(y));

	return n >= 0 && n == m && memcmp(x, y, (size_t)n) == 0;
}

static kpack_error_t same_bytes(const char *a, const char *b, bool *same,
				struct kpackx_error *why)
{
	struct stat x, y;
	int f, g;
	kpack_error_t err = below_file_open_nofollow(a, &f, &x, why);

	if (err)
		return kp_fail_prefix(why, err, "%s", a);
	err = below_file_open_nofollow(b, &g, &y, why);
	if (err) {
		kp_fail_prefix(why, err, "%s", b);
	} else {
		struct kp_source s = kp_source_fd(f, 0, (uint64_t)x.st_size);
		struct kp_source t = kp_source_fd(g, 0, (uint64_t)y.st_size);

		err = kp_source_compare(&s, &t, same, why);
		close(g);
	}
	close(f);
	return err;
}

static mode_t type_of(const struct recombine_item *item)
{
	return item->file->mode & S_IFMT;
}

/* Whether two archives have the same entries with the same bytes, however stored. */
static kpack_error_t same_entries(const struct kpack_archive *a,
				  const struct kpack_archive *b, bool *same,
				  struct kpackx_error *why)
{
	size_t n = kp_archive_entry_count(a), kept, counted, entry;

	kp_archive_faults(a, &kept, &counted);
	*same = !counted && n == kp_archive_entry_count(b);
	for (size_t i = 0; i < n && *same; i++) {
		struct kp_entry_info info;

		kp_archive_entry(a, i, &info);
		*same = kp_archive_find(b, info.key, info.arch, &entry);
		if (*same)
			KP_TRY(content_hash_same(a, i, b, entry, same, why));
	}
	return KPACK_SUCCESS;
}

/* Only the type of pipes and devices is compared. */
static kpack_error_t compare_with_chosen(const struct run *r, size_t i, bool *same,
					 struct kpackx_error *why)
{
	const struct recombine_item *a = &r->items[r->chosen], *b = &r->items[i];

	*same = type_of(a) == type_of(b);
	if (!*same)
		return KPACK_SUCCESS;
	if (S_ISLNK(a->file->mode)) {
		*same = same_target(r->paths[r->chosen], r->paths[i]);
		return KPACK_SUCCESS;
	}
	if (!S_ISREG(a->file->mode))
		return KPACK_SUCCESS;
	KP_TRY(same_bytes(r->paths[r->chosen], r->paths[i], same, why));
	return !*same && a->archive && b->archive
		       ? same_entries(a->archive, b->archive, same, why)
		       : KPACK_SUCCESS;
}

/* --- settling differences ---------------------------------------------------------- */

static void report_clash(const struct run *r, size_t other, const char *what)
{
	char a[512], b[512];

	recombine_fault(r->c, "%s and %s: %s", recombine_shown(&r->items[r->chosen], a),
			recombine_shown(&r->items[other], b), what);
}

static void note_clash(const struct run *r, size_t other, const char *what)
{
	char a[512], b[512];

	recombine_note(r->c, "%s is taken, not %s: %s",
		       recombine_shown(&r->items[r->chosen], a),
		       recombine_shown(&r->items[other], b), what);
}

/* True if the user must settle a difference. */
static bool is_fault(const struct run *r)
{
	const struct recombine_config *config = r->c->args->config;
	const struct recombine_item *item = &r->items[r->chosen];

	if (r->preferred)
		return false;
	if (item->dest != DEST_GENERIC)
		return config->error_on_duplicate;
	return item->database || item->archive || config->verify_generic;
}

static void settle_files(const struct run *r, size_t other)
{
	if (is_fault(r))
		report_clash(r, other, "the contents differ; --prefer SHARD settles it");
	else
		note_clash(r, other, "the contents differ");
}

static void settle_join(const struct run *r, struct join *join)
{
	struct recombine_item *item = &r->items[r->chosen];
	bool impossible = join->relation == JOIN_WRAPPERS;

	if (impossible || (join->relation != JOIN_SAME && !r->preferred)) {
		report_clash(r, join->other, join->text);
		return;
	}
	if (join->relation != JOIN_SAME)
		note_clash(r, join->other, join->text);
	if (join->relation == JOIN_KINDS)
		return;
	r->c->joined++;
	if (join->same_marker)
		return;
	item->rewritten = true;
	item->marker = join->marker;
	join->marker = (struct kp_marker){0};
}

/* Settle regular files; OTHER differs from the chosen one. */
static kpack_error_t settle_regular(const struct run *r, size_t other,
				    struct kpackx_error *why)
{
	struct join join;
	kpack_error_t err = join_look(r->paths, r->n, r->chosen, &join, why);

	if (!err && join.relation == JOIN_NOTHING)
		settle_files(r, other);
	else if (!err)
		settle_join(r, &join);
	join_fini(&join);
	return err;
}

static kpack_error_t settle_differing(const struct run *r, size_t other,
				      struct kpackx_error *why)
{
	for (size_t i = 0; i < r->n; i++) {
		if (type_of(&r->items[i]) == type_of(&r->items[r->chosen]))
			continue;
		if (S_ISDIR(r->items[i].file->mode) ||
		    S_ISDIR(r->items[r->chosen].file->mode))
			report_clash(r, i, "one is a directory, the other not");
		else
			settle_files(r, i);
		return KPACK_SUCCESS;
	}
	if (!S_ISREG(r->items[r->chosen].file->mode) || r->items[r->chosen].archive) {
		settle_files(r, other);
		return KPACK_SUCCESS;
	}
	return settle_regular(r, other, why);
}

/* --- runs -------------------------------------------------------------------------- */

static void choose_item(struct run *r)
{
	const char *prefer = r->c->args->prefer;

	for (size_t i = 0; prefer && i < r->n && !r->preferred; i++)
		if (strcmp(r->items[i].tree->shard, prefer) == 0) {
			r->chosen = i;
			r->preferred = true;
		}
	r->items[r->chosen].chosen = true;
}

static kpack_error_t settle_several(struct run *r, struct kpackx_error *why)
{
	bool same = true;

	r->paths = xcalloc(r->n, sizeof(*r->paths));
	for (size_t i = 0; i < r->n; i++)
		r->paths[i] = recombine_path(&r->items[i]);
	for (size_t i = 0; i < r->n && same; i++) {
		if (i == r->chosen)
			continue;
		KP_TRY(compare_with_chosen(r, i, &same, why));
		if (!same)
			return settle_differing(r, i, why);
	}
	if (r->items[0].dest != DEST_GENERIC && !r->c->args->config->error_on_duplicate)
		note_clash(r, r->chosen ? 0 : 1, "they are equal");
	return KPACK_SUCCESS;
}

static kpack_error_t settle_run(struct run *r, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;

	choose_item(r);
	if (r->n > 1)
		err = settle_several(r, why);
	for (size_t i = 0; r->paths && i < r->n; i++)
		free(r->paths[i]);
	free(r->paths);
	return err;
}

/* --- directories ------------------------------------------------------------------- */

struct above {
	const char *path;
	size_t size;
	int dest;
};

static int find_above(const void *key, const void *element)
{
	const struct above *a = key;
	const struct recombine_item *item = element;
	int order = strncmp(a->path, item->file->path, a->size);

	if (a->dest != item->dest)
		return KP_ORDER(a->dest, item->dest);
	return order ? order : item->file->path[a->size] ? -1 : 0;
}

/* Report a fault if a parent directory of ITEM is not a directory in another shard. */
static void check_above(struct recombine_component *c, const struct recombine_item *item)
{
	struct above key = {item->file->path, 0, item->dest};
	const struct recombine_item *there;
	char a[512], b[512];

	for (const char *slash = strchr(key.path, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		key.size = (size_t)(slash - key.path);
		there = bsearch(&key, c->items, c->n_items, sizeof(*there), find_above);
		if (!there || S_ISDIR(there->file->mode))
			continue;
		recombine_fault(c, "%s is not a directory; %s needs one of that name",
				recombine_shown(there, a), recombine_shown(item, b));
		return;
	}
}

static void check_directories(struct recombine_component *c)
{
	for (size_t i = 0; i < c->n_items; i++)
		if (c->items[i].chosen)
			check_above(c, &c->items[i]);
}

/* --- all of them ------------------------------------------------------------------- */

/*
 * The number of the component's generic trees, each of which should have the same files.
 */
static size_t generic_trees(const struct recombine_component *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->trees->n_trees; i++)
		n += strcmp(c->trees->trees[i].component, c->name) == 0 &&
		     strcmp(c->trees->trees[i].target, KP_ARCH_GENERIC) == 0;
	return n;
}

static void check_everywhere(const struct run *r, size_t trees)
{
	const struct recombine_item *item = &r->items[0];
	char shown[512];

	if (item->dest != DEST_GENERIC || item->archive ||
	    strcmp(item->tree->target, KP_ARCH_GENERIC) != 0 || r->n == trees)
		return;
	if (r->c->args->config->verify_generic && !r->c->args->prefer)
		recombine_fault(r->c, "%s is in %zu of %zu generic trees",
				recombine_shown(item, shown), r->n, trees);
	else if (item->shard != 0)
		recombine_note(r->c, "%s is not in the primary shard; taken",
			       recombine_shown(item, shown));
}

static int by_place(const void *a, const void *b)
{
	const struct recombine_item *x = a, *y = b;
	int order;

	if (x->dest != y->dest)
		return KP_ORDER(x->dest, y->dest);
	order = strcmp(x->file->path, y->file->path);
	if (order)
		return order;
	if (x->shard != y->shard)
		return KP_ORDER(x->shard, y->shard);
	return strcmp(x->tree->target, y->tree->target);
}

kpack_error_t recombine_settle(struct recombine_component *c, struct kpackx_error *why)
{
	size_t trees = generic_trees(c);

	if (c->n_items)
		qsort(c->items, c->n_items, sizeof(*c->items), by_place);
	for (size_t i = 0, end; i < c->n_items; i = end) {
		struct run r = {.c = c, .items = &c->items[i]};

		for (end = i + 1; end < c->n_items; end++)
			if (c->items[end].dest != r.items->dest ||
			    strcmp(c->items[end].file->path, r.items->file->path) != 0)
				break;
		r.n = end - i;
		if (r.items->dest < DEST_GENERIC)
			continue;
		check_everywhere(&r, trees);
		KP_TRY(settle_run(&r, why));
	}
	check_directories(c);
	return KPACK_SUCCESS;
}
