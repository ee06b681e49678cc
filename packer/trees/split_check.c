/* SPDX-License-Identifier: MIT */
/*
 * What must be in the output trees is known from the scan and the partition: a list of all paths,
 * with what kind of file each is.  The staged trees are listed and compared with it, which
 * costs no look into a file; that their bytes are right is what tests are for.  Trees that
 * are in the way are compared with the same list, to find out whose they are.
 */
#include <errno.h>
#include <stdlib.h>
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "packer/archives/binary.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"
#include "split.h"

struct expected {
	char *path; /* "NAME_PART/PREFIX/FILE" */
	mode_t type;
	bool archive; /* one that this run wrote: an earlier run's may have other bytes */
	bool converted; /* a binary that is converted */
	bool seen;
};

struct checker {
	const struct split *s;
	struct expected *items; /* by path, once sorted */
	size_t count, cap;
};

static struct expected *expect(struct checker *c, char *path, mode_t mode)
{
	xgrow(&c->items, c->count, &c->cap, sizeof(*c->items));
	c->items[c->count] = (struct expected){.path = path, .type = mode & S_IFMT};
	return &c->items[c->count++];
}

/* What is expected at PATH, below the directory of the trees; or NULL. */
static struct expected *find(const struct checker *c, const char *path)
{
	struct expected probe = {.path = (char *)path};

	return kp_find(c->items, c->count, &probe, KP_BY_TEXT(struct expected, path));
}

/* Expect the file RELATIVE of the prefix in the tree.  The result is valid until the next call. */
static struct expected *expect_in(struct checker *c, const struct split_tree *tree,
				  const char *prefix, const char *relative, mode_t mode)
{
	return expect(c,
		      xasprintf("%s%s%s%s%s", tree->name, *prefix ? "/" : "", prefix,
				*relative ? "/" : "", relative),
		      mode);
}

/*
 * Expect what the partitions assign: entries of the scans, directories of the generic tree
 * among them, and written archives, each once where archives are joined.  Then expect all
 * directories above, once each.  Sorted paths have their directories in common with the one
 * before, so few of them are listed twice.
 */
static kpack_error_t expect_all(struct checker *c, struct kpackx_error *why)
{
	const struct split *s = c->s;
	kpack_error_t err = KPACK_SUCCESS;
	size_t n, kept = 0;

	for (size_t i = 0; i < s->n_items; i++) {
		const struct split_prefix *p = &s->items[i];
		const struct dispositions *dispositions = &p->packing.dispositions;
		struct expected *found;

		for (size_t k = 0; k < p->packing.scan.n_entries; k++) {
			const struct scan_entry *e = &p->packing.scan.entries[k];
			size_t part = p->parts.tree_of[k];

			if (part == PARTITION_NONE)
				continue;
			found = expect_in(c, split_tree_of(s, p->parts.items[part].name),
					  p->path, e->relative, e->mode);
			/* all hard links of a converted binary are converted */
			found->converted =
				dispositions->items[e->first].fate == FATE_CONVERTED;
		}
		for (size_t k = 0; k < p->parts.count; k++) {
			const struct output_tree *part = &p->parts.items[k];

			for (size_t a = 0; a < part->n_archives; a++) {
				const char *name = part->archives[a];
				KP_AUTO_FREE char *relative = split_archive_path(p, name);

				if (split_archive_home(s, p, part->name, name, NULL) != p)
					continue;
				found = expect_in(c, split_tree_of(s, part->name), "",
						  relative, S_IFREG);
				found->archive = true;
			}
		}
		expect_in(c, split_generic(s), p->path, "", S_IFDIR);
	}
	for (size_t i = 0; i < s->n_outside; i++)
		if (!s->outside[i].left)
			expect_in(c, split_generic(s), "", s->outside[i].relative,
				  s->outside[i].id.mode);
	for (size_t i = 0; i < s->n_trees; i++)
		if (s->prefixes.manifest && &s->trees[i] != split_generic(s))
			expect_in(c, &s->trees[i], "", ARTIFACT_MANIFEST, S_IFREG);
	kp_sort(c->items, c->count, KP_BY_TEXT(struct expected, path));
	n = c->count;
	for (size_t i = 0; i < n; i++) {
		const char *path = c->items[i].path,
			   *last = i ? c->items[i - 1].path : "";
		size_t same = 0;

		while (path[same] && path[same] == last[same])
			same++;
		for (const char *slash = path + same; (slash = strchr(slash, '/'));
		     slash++)
			expect(c, xstrndup(path, (size_t)(slash - path)), S_IFDIR);
	}
	kp_sort(c->items, c->count, KP_BY_TEXT(struct expected, path));
	for (size_t i = 0; i < c->count; i++) {
		struct expected *e = &c->items[i], *last = &c->items[kept ? kept - 1 : 0];

		if (!kept || strcmp(last->path, e->path) != 0) {
			c->items[kept++] = *e;
			continue;
		}
		if (!S_ISDIR(last->type) || !S_ISDIR(e->type))
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				      "%s: two files have this path", last->path);
		free(e->path);
	}
	c->count = kept;
	return err;
}

/* --- the trees of this run --------------------------------------------------------- */

/* Each path in the staging directory must be expected, and each expected one be there. */
static kpack_error_t check_staged(struct checker *c, struct kpackx_error *why)
{
	struct tree_list *list = tree_list_open(c->s->staging.path);
	kpack_error_t err = KPACK_SUCCESS;
	struct tree_item e;

	while (!err && tree_list_next(list, &e)) {
		struct expected *found;

		if (e.kind == TREE_FAULT) {
			errno = e.error;
			err = below_fail(why, "%s", e.path);
		}
		if (err || e.kind == TREE_DIR_END || e.level == 0)
			continue;
		found = find(c, e.rest);
		if (!found)
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				      "%s: does not come from the input", e.rest);
		else if ((e.st.st_mode & S_IFMT) != found->type)
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				      "%s: has another file type than in the input",
				      e.rest);
		else
			found->seen = true;
	}
	tree_list_close(list);
	for (size_t i = 0; i < c->count && !err; i++)
		if (!c->items[i].seen)
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s: is missing",
				      c->items[i].path);
	return err;
}

/* --- trees of an earlier run ------------------------------------------------------- */

/*
 * Whether ITEM, at whose path this run writes E, or nothing if that is NULL, can be an earlier
 * run's.  Copies are not compared, because their originals may have changed since.
 */
static bool is_earlier(const struct split *s, const struct expected *e,
		       const struct tree_item *item)
{
	mode_t type = item->st.st_mode & S_IFMT;
	struct kpack_archive *a = NULL;
	size_t n = strlen(s->name);
	struct binary b;
	bool yes;

	if (type == S_IFDIR || (e && type != e->type))
		return type == S_IFDIR && (!e || e->type == S_IFDIR);
	if (!e || e->archive) {
		/* an archive with a name and a group as this run's have */
		yes = type == S_IFREG && strncmp(item->name, s->name, n) == 0 &&
		      kp_is_archive_name(item->name) &&
		      !below_archive_open(item->path, &a, NULL) &&
		      kp_span_starts(kp_archive_group(a), s->name, n);
		kp_archive_close(a);
		return yes;
	}
	if (!e->converted)
		return true;
	yes = !binary_open(item->path, &b, NULL) && b.fat.kind == KP_FATBIN_CONVERTED;
	binary_close(&b);
	return yes;
}

/*
 * A tree that has a name of this run's is an earlier run's, and may be replaced, if it has
 * no file that this run does not write as well.  A file that the input had then, and has no
 * more, cannot be told from anybody's: it is named, and nothing is replaced.
 */
static kpack_error_t check_earlier(const struct checker *c, const char *tree, bool *there,
				   struct kpackx_error *why)
{
	KP_AUTO_FREE char *root = xasprintf("%s/%s", c->s->args->output, tree);
	kpack_error_t err = KPACK_SUCCESS;
	struct tree_list *list;
	struct tree_item e;
	struct stat st;

	if (below_lstat(root, &st) < 0)
		return KPACK_SUCCESS;
	*there = true;
	list = tree_list_open(root);
	while (!err && tree_list_next(list, &e)) {
		KP_AUTO_FREE char *path = xasprintf("%s/%s", tree, e.rest);

		if (e.kind == TREE_FAULT) {
			errno = e.error;
			err = below_fail(why, "%s", e.path);
		} else if (e.kind != TREE_DIR_END && e.level > 0 &&
			   !is_earlier(c->s, find(c, path), &e)) {
			err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				      "%s: already exists, and %s in it is not from this "
				      "input: --force replaces the tree",
				      root, e.rest);
		}
	}
	tree_list_close(list);
	return err;
}

kpack_error_t split_check(const struct split *s, bool *again, struct kpackx_error *why)
{
	struct checker c = {.s = s};
	kpack_error_t err = expect_all(&c, why);

	*again = s->args->force;
	for (size_t i = 0; i < s->n_trees && !s->args->force && !err; i++)
		err = check_earlier(&c, s->trees[i].name, again, why);
	if (!err)
		err = check_staged(&c, why);
	for (size_t i = 0; i < c.count; i++)
		free(c.items[i].path);
	free(c.items);
	return err;
}
