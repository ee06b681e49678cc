/* SPDX-License-Identifier: MIT */
#include "split_check.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/archives/binary.h"
#include "packer/cli/pipeline.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/tree_list.h"
#include "split_move.h"
#include "stored_check.h"
#include "core/archive/naming.h"
#include "core/target/target.h"
#include "joined.h"
#include "artifact.h"

/* The kind of file that must exist at a path in the output trees. */
enum expected_kind {
	EXPECT_DIRECTORY,
	EXPECT_ARCHIVE,
	EXPECT_MANIFEST, /* a manifest that split wrote */
	EXPECT_FILE,     /* with the bytes of FROM */
	EXPECT_LINK,     /* with the target of FROM */
	EXPECT_SPECIAL,
	EXPECT_CONVERTED, /* whose marker names KEY */
};

struct expected {
	char *path; /* "NAME_PART/PREFIX/FILE" */
	enum expected_kind kind;
	const char *from; /* borrowed */
	const char *key;
	mode_t type;
	bool seen;
};

struct checker {
	const struct split *s;
	struct expected *items; /* by path, once sorted */
	size_t count, cap;
};

/* --- expected paths ---------------------------------------------------------------- */

static void expect_path(struct checker *c, const struct split_tree *tree,
			const char *prefix, const char *relative, struct expected item)
{
	size_t skip = strlen(c->s->staging.path) + 1;

	item.path = split_path(c->s, tree, prefix, relative);
	memmove(item.path, item.path + skip, strlen(item.path + skip) + 1);
	xgrow(&c->items, c->count, &c->cap, sizeof(*c->items));
	c->items[c->count++] = item;
}

static struct expected expected_file(const char *from, mode_t mode)
{
	return (struct expected){
		.kind = S_ISREG(mode)   ? EXPECT_FILE
			: S_ISLNK(mode) ? EXPECT_LINK
			: S_ISDIR(mode) ? EXPECT_DIRECTORY
					: EXPECT_SPECIAL,
		.from = from,
		.type = mode & S_IFMT,
	};
}

/* All hard links of a converted binary are expected to be converted. */
static struct expected expected_of(const struct split_prefix *i, size_t entry)
{
	const struct scan *scan = &i->packing.scan;
	const struct scan_entry *e = &scan->entries[entry];
	struct expected item = expected_file(e->path, e->mode);

	if (i->packing.dispositions.items[e->first].fate == FATE_CONVERTED) {
		item.kind = EXPECT_CONVERTED;
		item.key = scan->entries[e->first].input->key;
	}
	return item;
}

static void expect_part(struct checker *c, const struct split_prefix *i, size_t number)
{
	const struct output_tree *part = &i->parts.items[number];
	const struct split_tree *tree = split_tree_of(c->s, part->name);
	const char *prefix = i->prefix->path;

	for (size_t k = 0; k < part->n_entries; k++)
		expect_path(c, tree, prefix,
			    i->packing.scan.entries[part->entries[k]].relative,
			    expected_of(i, part->entries[k]));
	for (size_t k = 0; k < part->n_archives; k++) {
		char *relative;

		if (split_archive_home(c->s, i, part->name, part->archives[k], NULL) != i)
			continue;
		relative = split_archive_path(i, part->archives[k]);
		expect_path(c, tree, prefix, relative,
			    (struct expected){.kind = EXPECT_ARCHIVE, .type = S_IFREG});
		free(relative);
	}
}

static void expect_prefix(struct checker *c, const struct split_prefix *i)
{
	const struct scan *scan = &i->packing.scan;
	const struct split_tree *generic = split_tree_of(c->s, KP_ARCH_GENERIC);

	for (size_t k = 0; k < i->parts.count; k++)
		expect_part(c, i, k);
	for (size_t k = 0; k < scan->n_entries; k++)
		if (S_ISDIR(scan->entries[k].mode) &&
		    i->parts.tree_of[k] == i->parts.generic)
			expect_path(c, generic, i->prefix->path,
				    scan->entries[k].relative, expected_of(i, k));
	expect_path(c, generic, i->prefix->path, "", expected_file(i->input, S_IFDIR));
}

static void expect_outside(struct checker *c)
{
	const struct split_tree *generic = split_tree_of(c->s, KP_ARCH_GENERIC);

	for (size_t i = 0; i < c->s->outside.count; i++) {
		const struct outside_entry *e = &c->s->outside.items[i];

		if (!e->left)
			expect_path(c, generic, "", e->relative,
				    expected_file(e->path, e->id.mode));
	}
	for (size_t i = 0; i < c->s->n_trees; i++) {
		const struct split_tree *tree = &c->s->trees[i];

		if (c->s->prefixes.manifest && tree != generic)
			expect_path(c, tree, "", ARTIFACT_MANIFEST,
				    (struct expected){.kind = EXPECT_MANIFEST,
						      .type = S_IFREG});
	}
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct expected *)a)->path,
		      ((const struct expected *)b)->path);
}

/*
 * Expect all parent directories of the expected paths; unite_directories drops
 * duplicates.
 */
static void expect_parents(struct checker *c)
{
	size_t n = c->count;

	for (size_t i = 0; i < n; i++) {
		const char *path = c->items[i].path,
			   *last = i ? c->items[i - 1].path : "";
		size_t same = 0;

		while (path[same] && path[same] == last[same])
			same++;
		for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
			if ((size_t)(slash - path) < same)
				continue;
			xgrow(&c->items, c->count, &c->cap, sizeof(*c->items));
			c->items[c->count++] = (struct expected){
				.path = xstrndup(path, (size_t)(slash - path)),
				.kind = EXPECT_DIRECTORY,
				.type = S_IFDIR};
		}
	}
}

/* Sort, and drop duplicates: only directories may be expected several times. */
static kpack_error_t unite_directories(struct checker *c, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	size_t n = 0;

	qsort(c->items, c->count, sizeof(*c->items), by_path);
	for (size_t i = 0; i < c->count; i++) {
		struct expected *e = &c->items[i], *last = n ? &c->items[n - 1] : NULL;

		if (!last || strcmp(last->path, e->path) != 0) {
			c->items[n++] = *e;
			continue;
		}
		if (last->kind != EXPECT_DIRECTORY || e->kind != EXPECT_DIRECTORY)
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				      "%s: two files have this path", last->path);
		free(e->path);
	}
	c->count = n;
	return err;
}

static kpack_error_t expect_all(struct checker *c, struct kpackx_error *why)
{
	for (size_t i = 0; i < c->s->n_items; i++)
		if (c->s->items[i].parts.count)
			expect_prefix(c, &c->s->items[i]);
	expect_outside(c);
	qsort(c->items, c->count, sizeof(*c->items), by_path);
	expect_parents(c);
	return unite_directories(c, why);
}

/* --- existing paths ---------------------------------------------------------------- */

static kpack_error_t visit_path(struct checker *c, const struct tree_item *e,
				struct kpackx_error *why)
{
	struct expected name = {.path = (char *)e->rest}, *found;

	if (e->kind == TREE_FAULT) {
		errno = e->error;
		return below_fail(why, "%s", e->path);
	}
	if (e->kind == TREE_DIR_END || e->level == 0)
		return KPACK_SUCCESS;
	found = bsearch(&name, c->items, c->count, sizeof(name), by_path);
	if (!found)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: does not come from the input", name.path);
	if ((e->st.st_mode & S_IFMT) != found->type)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "%s: has another file type than in the input", name.path);
	found->seen = true;
	return KPACK_SUCCESS;
}

static kpack_error_t walk_trees(struct checker *c, struct kpackx_error *why)
{
	struct tree_list *list = tree_list_open(c->s->staging.path);
	kpack_error_t err = KPACK_SUCCESS;
	struct tree_item e;

	while (!err && tree_list_next(list, &e))
		err = visit_path(c, &e, why);
	tree_list_close(list);
	for (size_t i = 0; i < c->count && !err; i++)
		if (!c->items[i].seen)
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s: is missing",
				      c->items[i].path);
	return err;
}

/* --- trees of an earlier run -------------------------------------------------------- */

/* Whether PATH is an archive with a name and a group as this run's have. */
static bool is_own_archive(const struct split *s, const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	struct kpack_archive *a = NULL;
	size_t n = strlen(s->name);
	bool yes = strncmp(name, s->name, n) == 0 && kp_is_archive_name(name) &&
		   !below_archive_open(path, &a, NULL) &&
		   kp_span_starts(kp_archive_group(a), s->name, n);

	kp_archive_close(a);
	return yes;
}

/*
 * Whether PATH, at which this run writes E, or nothing if that is NULL, can be an earlier
 * run's.  Copies are not compared, because their originals may have changed since.
 */
static bool is_earlier(const struct split *s, const struct expected *e,
		       const struct tree_item *item)
{
	struct binary b;
	bool yes;

	if (S_ISDIR(item->st.st_mode) || (e && (item->st.st_mode & S_IFMT) != e->type))
		return S_ISDIR(item->st.st_mode) && (!e || e->type == S_IFDIR);
	if (!e || e->kind == EXPECT_ARCHIVE)
		return S_ISREG(item->st.st_mode) && is_own_archive(s, item->path);
	if (e->kind != EXPECT_CONVERTED)
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
static kpack_error_t check_earlier(const struct checker *c, const char *tree,
				   struct kpackx_error *why)
{
	char *root = xasprintf("%s/%s", c->s->args->output, tree);
	struct tree_list *list = tree_list_open(root);
	kpack_error_t err = KPACK_SUCCESS;
	struct tree_item e;

	while (!err && tree_list_next(list, &e)) {
		char *path = xasprintf("%s/%s", tree, e.rest);
		struct expected name = {.path = path};

		if (e.kind == TREE_FAULT) {
			errno = e.error;
			err = below_fail(why, "%s", e.path);
		} else if (e.kind != TREE_DIR_END && e.level > 0 &&
			   !is_earlier(c->s,
				       bsearch(&name, c->items, c->count, sizeof(name),
					       by_path),
				       &e)) {
			err = kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				      "%s: already exists, and %s in it is not from this "
				      "input: --force replaces the tree",
				      root, e.rest);
		}
		free(path);
	}
	tree_list_close(list);
	free(root);
	return err;
}

/* Check the trees that are in the way; *AGAIN: there is one, and it may be replaced. */
static kpack_error_t check_all_earlier(const struct checker *c, bool *again,
				       struct kpackx_error *why)
{
	*again = c->s->args->force;
	for (size_t i = 0; i < c->s->n_trees && !c->s->args->force; i++) {
		char *path = xasprintf("%s/%s", c->s->args->output, c->s->trees[i].name);
		struct stat st;
		bool there = below_lstat(path, &st) == 0;

		free(path);
		if (!there)
			continue;
		*again = true;
		KP_TRY(check_earlier(c, c->s->trees[i].name, why));
	}
	return KPACK_SUCCESS;
}

/* --- bytes ------------------------------------------------------------------------- */

static kpack_error_t open_source(const char *path, int *fd, struct kp_source *out,
				 struct kpackx_error *why)
{
	kpack_error_t err;
	struct stat st;

	*fd = -1;
	err = below_file_open_nofollow(path, fd, &st, why);
	if (err)
		return kp_fail_prefix(why, err, "%s", path);
	*out = kp_source_fd(*fd, 0, (uint64_t)st.st_size);
	return KPACK_SUCCESS;
}

static kpack_error_t check_bytes(const struct expected *e, const char *path,
				 struct kpackx_error *why)
{
	struct kp_source a, b;
	int x, y = -1;
	bool same;
	kpack_error_t err = open_source(e->from, &x, &a, why);

	if (!err)
		err = open_source(path, &y, &b, why);
	if (!err)
		err = kp_source_compare(&a, &b, &same, why);
	if (!err && !same)
		err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s: differs from %s",
			      e->path, e->from);
	if (x >= 0)
		close(x);
	if (y >= 0)
		close(y);
	return err;
}

static kpack_error_t check_link(const struct expected *e, const char *path,
				struct kpackx_error *why)
{
	char *a = xmalloc(2 * PATH_MAX), *b = a + PATH_MAX;
	ssize_t n = below_readlink(e->from, a, PATH_MAX);
	ssize_t m = n < 0 ? -1 : below_readlink(path, b, PATH_MAX);
	kpack_error_t err = KPACK_SUCCESS;

	if (m < 0)
		err = below_fail(why, "%s: cannot read the link",
				 n < 0 ? e->from : e->path);
	else if (m != n || memcmp(a, b, (size_t)n) != 0)
		err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			      "%s: links to another target than %s", e->path, e->from);
	free(a);
	return err;
}

/* The binary must have no device code left, and its marker must name the stored key. */
static kpack_error_t check_binary(struct binary *b, const char *key,
				  struct kpackx_error *why)
{
	if (b->fat.kind != KP_FATBIN_CONVERTED)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "is not converted");
	KP_TRY(binary_read_marker(b, why));
	if (strcmp(b->marker.kernel_name, key) != 0 || b->fat.containers.count)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "its marker names %s, not %s, or it still has device code",
			       b->marker.kernel_name, key);
	return KPACK_SUCCESS;
}

static kpack_error_t check_converted(const struct expected *e, const char *path,
				     struct kpackx_error *why)
{
	struct binary b;
	kpack_error_t err = binary_open(path, &b, why);

	if (!err)
		err = check_binary(&b, e->key, why);
	binary_close(&b);
	return err ? kp_fail_prefix(why, err, "%s", e->path) : KPACK_SUCCESS;
}

static kpack_error_t check_path(void *arg, void *state, size_t job, void **result,
				struct kpackx_error *why)
{
	const struct checker *c = arg;
	const struct expected *e = &c->items[job];
	kpack_error_t err = KPACK_SUCCESS;
	char *path = xasprintf("%s/%s", c->s->staging.path, e->path);

	(void)state;
	*result = NULL;
	if (e->kind == EXPECT_FILE)
		err = check_bytes(e, path, why);
	else if (e->kind == EXPECT_LINK)
		err = check_link(e, path, why);
	else if (e->kind == EXPECT_CONVERTED)
		err = check_converted(e, path, why);
	free(path);
	return err;
}

static uint64_t job_cost(void *arg, size_t job)
{
	(void)arg, (void)job;
	return 1;
}

static kpack_error_t check_contents(struct checker *c, struct kpackx_error *why)
{
	struct pipeline pipeline = {
		.n_jobs = c->count,
		.threads = c->s->args->jobs,
		.budget = 256, /* files: two descriptors each */
		.arg = c,
		.cost = job_cost,
		.work = check_path,
	};

	return pipeline_run(&pipeline, NULL, why);
}

/* --- archives ---------------------------------------------------------------------- */

/*
 * The architectures that an archive of PART may have: those of the prefix I, or of all
 * prefixes, whose archives were joined.  The strings are borrowed.
 */
static char **arches_of(const struct split *s, const struct split_prefix *i,
			const char *part, size_t *count)
{
	const struct split_prefix *items = s->joined ? s->items : i;
	size_t n_items = s->joined ? s->n_items : 1;
	char **arches = NULL;

	*count = 0;
	for (size_t k = 0; k < n_items; k++) {
		size_t number = partition_find(&items[k].parts, part);
		const struct output_tree *p;

		if (number == PARTITION_NONE)
			continue;
		p = &items[k].parts.items[number];
		arches = xrealloc(arches, (*count + p->n_arches + 1) * sizeof(*arches));
		for (size_t a = 0; a < p->n_arches; a++)
			arches[(*count)++] = p->arches[a];
	}
	return arches;
}

static kpack_error_t check_archive(const struct split *s, const struct split_prefix *i,
				   const struct output_tree *part, const char *name,
				   struct stored_check *stored, struct kpackx_error *why)
{
	size_t n_arches;
	char **arches = arches_of(s, i, part->name, &n_arches);
	char *relative = split_archive_path(i, name);
	char *path =
		split_path(s, split_tree_of(s, part->name), i->prefix->path, relative);
	kpack_error_t err = stored_check_archive(stored, path, arches, n_arches, why);

	free(relative);
	free(path);
	free(arches);
	return err;
}

static kpack_error_t check_archives(const struct split *s, const struct split_prefix *i,
				    struct stored_check *stored, struct kpackx_error *why)
{
	for (size_t k = 0; k < i->parts.count; k++) {
		const struct output_tree *part = &i->parts.items[k];

		for (size_t n = 0; n < part->n_archives; n++)
			if (split_archive_home(s, i, part->name, part->archives[n],
					       NULL) == i)
				KP_TRY(check_archive(s, i, part, part->archives[n],
						     stored, why));
	}
	return KPACK_SUCCESS;
}

/* Check the archives of N prefixes, which together have the code of these prefixes. */
static kpack_error_t check_stored(const struct split *s, const struct split_prefix *items,
				  size_t n, struct kpackx_error *why)
{
	struct stored_check *stored = stored_check_new();
	kpack_error_t err = KPACK_SUCCESS;

	for (size_t i = 0; i < n; i++)
		stored_check_add(stored, &items[i].packing);
	for (size_t i = 0; i < n && !err; i++)
		err = check_archives(s, &items[i], stored, why);
	if (!err)
		err = stored_check_end(stored, why);
	stored_check_free(stored);
	return err;
}

static kpack_error_t check_all(struct checker *c, bool *again, struct kpackx_error *why)
{
	KP_TRY(expect_all(c, why));
	KP_TRY(check_all_earlier(c, again, why));
	KP_TRY(walk_trees(c, why));
	KP_TRY(check_contents(c, why));
	if (c->s->joined)
		return check_stored(c->s, c->s->items, c->s->n_items, why);
	for (size_t i = 0; i < c->s->n_items; i++)
		KP_TRY(check_stored(c->s, &c->s->items[i], 1, why));
	return KPACK_SUCCESS;
}

kpack_error_t split_check(const struct split *s, bool *again, struct kpackx_error *why)
{
	struct checker c = {.s = s};
	kpack_error_t err = check_all(&c, again, why);

	for (size_t i = 0; i < c.count; i++)
		free(c.items[i].path);
	free(c.items);
	return err;
}
