/* SPDX-License-Identifier: MIT */
#include "prune.h"
#include <errno.h>
#include <stdlib.h>
#include "core/archive/naming.h"
#include "core/base/path.h"
#include "packer/archives/content.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/exit.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "packer/files/leftovers.h"
#include "packer/files/lock.h"
#include "packer/files/tree_list.h"
#include "keep.h"
#include "prune_rewrite.h"

/* --- the tree ------------------------------------------------------------------------ */

/* A file that is called like an archive. */
struct candidate {
	char *path;
	dev_t dev;
	ino_t ino;
	struct installed_archive *reached; /* by a binary of the tree; or NULL */
	bool own;                          /* in a directory of the tree's archives */
};

struct candidates {
	struct candidate *items; /* by path, bytewise */
	size_t count, cap;
};

static void candidates_fini(struct candidates *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].path);
	free(list->items);
}

static void add_candidate(struct candidates *list, const struct tree_item *item)
{
	xgrow(&list->items, list->count, &list->cap, sizeof(*list->items));
	list->items[list->count++] = (struct candidate){.path = xstrdup(item->path),
							.dev = item->st.st_dev,
							.ino = item->st.st_ino};
}

static void report_file(struct prune *p, const char *path, const struct kpackx_error *why)
{
	report_why(path, why);
	p->n_faults++;
}

static void visit_item(struct prune *p, const struct tree_item *item,
		       struct candidates *list)
{
	struct kpackx_error why = {0};

	if (item->kind == TREE_FAULT) {
		report_error(item->path, "%s", below_strerror(item->error));
		p->n_faults++;
	} else if (item->kind != TREE_OTHER || !S_ISREG(item->st.st_mode)) {
		return;
	} else if (kp_is_archive_name(item->name)) {
		add_candidate(list, item);
	} else if (demand_add(&p->demand, item->path, &why)) {
		report_file(p, item->path, &why);
	}
}

static void walk_tree(struct prune *p, struct candidates *list)
{
	struct tree_list *tree = tree_list_open(p->args.tree);
	struct tree_item item;

	while (tree_list_next(tree, &item))
		visit_item(p, &item, list);
	tree_list_close(tree);
	demand_sort(&p->demand);
}

/* --- its archives -------------------------------------------------------------------- */

static void find_reached(const struct prune *p, struct candidate *c)
{
	for (size_t i = 0; i < p->demand.set.count; i++) {
		struct installed_archive *a = p->demand.set.archives[i];

		if (a->dev == c->dev && a->ino == c->ino)
			c->reached = a;
	}
}

/*
 * The archives of the tree are in directories ".kpack", or in directories where its
 * binaries find archives.
 */
static void find_own(const struct prune *p, struct candidates *list)
{
	for (size_t i = 0; i < list->count; i++)
		find_reached(p, &list->items[i]);
	for (size_t i = 0, end; i < list->count; i = end) {
		struct kp_span dir = kp_path_directory(list->items[i].path);
		bool own = kp_is_archive_of_tree(list->items[i].path);

		for (end = i; end < list->count &&
			      kp_span_eq(dir, kp_path_directory(list->items[end].path));
		     end++)
			own |= list->items[end].reached != NULL;
		for (size_t k = i; k < end; k++)
			list->items[k].own = own;
	}
}

static void lock_directory(struct prune *p, const char *path)
{
	struct kp_span dir = kp_path_directory(path);
	struct prune_dir *d;
	struct kpackx_error why = {0};

	xgrow(&p->dirs, p->n_dirs, &p->dirs_cap, sizeof(*p->dirs));
	d = &p->dirs[p->n_dirs++];
	d->path = xstrndup((const char *)dir.data, dir.size);
	if (leftovers_lock(d->path, &d->lock, &why))
		report_file(p, NULL, &why); /* it has the path */
}

/* Check that the file at PATH is what was opened as A. */
static kpack_error_t check_unchanged(const char *path, const struct kpack_archive *a,
				     struct kpackx_error *why)
{
	const struct stat *was = kp_archive_stat(a);
	struct stat st;

	if (below_lstat(path, &st) < 0)
		return below_fail(why, "cannot look at it");
	if (st.st_dev == was->st_dev && st.st_ino == was->st_ino &&
	    st.st_size == was->st_size && st.st_mtim.tv_sec == was->st_mtim.tv_sec &&
	    st.st_mtim.tv_nsec == was->st_mtim.tv_nsec &&
	    st.st_ctim.tv_sec == was->st_ctim.tv_sec &&
	    st.st_ctim.tv_nsec == was->st_ctim.tv_nsec)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_IO_ERROR,
		       "changed meanwhile: run kpack prune again");
}

static kpack_error_t check_archive(const char *path, const struct installed_archive *a,
				   struct kpackx_error *why)
{
	size_t kept, counted;

	if (!a->archive) {
		*why = a->why;
		return why->code;
	}
	KP_TRY(check_unchanged(path, a->archive, why));
	kp_archive_faults(a->archive, &kept, &counted);
	return counted ? kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				 "it has faults and cannot be copied; kpack verify "
				 "names them")
		       : KPACK_SUCCESS;
}

/* What kpack thin --keep keeps may be there, too: only --undo knows when it goes. */
static bool has_recipes(const struct kpack_archive *a)
{
	for (size_t i = 0; i < kp_archive_entry_count(a); i++)
		if (keep_is_recipe(a, i))
			return true;
	return false;
}

static kpack_error_t add_archive(struct prune *p, const struct candidate *c,
				 struct kpackx_error *why)
{
	struct prune_archive a = {.archive = c->reached};
	struct reach unused = {0};
	kpack_error_t err = KPACK_SUCCESS;

	if (!a.archive) {
		err = installed_add(&p->demand.set, c->path, &unused, why);
		if (!err)
			a.archive = unused.items[0].archive;
		reach_fini(&unused);
	}
	KP_TRY(err);
	KP_TRY(check_archive(c->path, a.archive, why));
	if (has_recipes(a.archive->archive))
		return KPACK_SUCCESS;
	a.path = xstrdup(c->path);
	a.relative = a.path + strlen(p->args.tree);
	a.relative += strspn(a.relative, "/");
	a.reasons = xcalloc(kp_archive_entry_count(a.archive->archive) + 1, 1);
	a.before = a.after = (uint64_t)kp_archive_stat(a.archive->archive)->st_size;
	xgrow(&p->archives, p->n_archives, &p->cap, sizeof(*p->archives));
	p->archives[p->n_archives++] = a;
	return KPACK_SUCCESS;
}

/* Lock the directories first, so that no other run changes the archives meanwhile. */
static void add_archives(struct prune *p, const struct candidates *list)
{
	const char *changed;
	int error = 0;

	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].own &&
		    (i == 0 || !kp_span_eq(kp_path_directory(list->items[i - 1].path),
					   kp_path_directory(list->items[i].path))))
			lock_directory(p, list->items[i].path);
	changed = demand_changed(&p->demand, &error);
	if (changed) {
		if (error && error != ENOENT)
			report_error(changed, "cannot look at it: %s",
				     below_strerror(error));
		else
			report_error(changed, "changed meanwhile: run kpack prune again");
		p->n_faults++;
	}
	for (size_t i = 0; i < list->count; i++) {
		struct kpackx_error why = {0};

		if (list->items[i].own && add_archive(p, &list->items[i], &why))
			report_file(p, list->items[i].path, &why);
	}
}

static int by_path(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int c = kp_span_cmp(kp_path_directory(x->path), kp_path_directory(y->path));

	return c ? c : strcmp(x->path, y->path);
}

static int open_tree(struct prune *p)
{
	struct candidates list = {0};

	demand_init(&p->demand, p->args.tree);
	walk_tree(p, &list);
	if (list.count)
		qsort(list.items, list.count, sizeof(*list.items), by_path);
	find_own(p, &list);
	add_archives(p, &list);
	candidates_fini(&list);
	if (p->n_faults)
		report_error(p->args.tree,
			     "nothing was removed because of the faults above");
	return p->n_faults ? EXIT_FAULT : EXIT_OK;
}

/* --- what goes ----------------------------------------------------------------------- */

/* Whether ENTRY of A is a file for which the caller's file_goes is true. */
static bool is_named(const struct prune *p, const struct prune_archive *a, size_t entry)
{
	const char *name = strrchr(a->relative, '/');
	struct kp_meta meta;

	if (!p->args.file_goes || !name ||
	    !kp_span_is((struct kp_span){(const uint8_t *)a->relative,
					 (size_t)(name - a->relative)},
			KP_ARCHIVES_DIR))
		return false;
	kp_archive_meta(a->archive->archive, entry, &meta);
	return meta.path.size && p->args.file_goes(p->args.file_arg, meta.path);
}

static enum prune_reason reason_of(struct prune *p, struct demand_query *q, size_t entry)
{
	struct kp_entry_info info;
	bool drops;

	/* also of what goes anyway: it shows that the list of GPUs is not wrong */
	kp_archive_entry(q->archive->archive, entry, &info);
	drops = arch_filter_given(&p->args.filter) &&
		arch_filter_drops(&p->args.filter, info.arch);
	switch (demand_of(q, entry)) {
	case DEMAND_GONE:
		return PRUNE_GONE;
	case DEMAND_UNASKED:
		return PRUNE_UNASKED;
	default:
		return drops ? PRUNE_OTHER_GPU : PRUNE_STAYS;
	}
}

/* The directory that the names in the archive are relative to, if its place says that. */
static char *root_of(const char *path)
{
	struct kp_span dir = kp_path_directory(path);

	if (!kp_is_archive_of_tree(path))
		return NULL;
	return xstrndup(path, dir.size - strlen(KP_ARCHIVES_DIR));
}

static void choose_entries(struct prune *p, struct prune_archive *a)
{
	size_t n = kp_archive_entry_count(a->archive->archive);
	char *root = root_of(a->path);
	struct demand_query q = {
		.demand = &p->demand, .archive = a->archive, .root = root};

	for (size_t i = 0; i < n; i++) {
		enum prune_reason reason =
			is_named(p, a, i) ? PRUNE_GONE : reason_of(p, &q, i);

		a->reasons[i] = (uint8_t)reason;
		a->n_entries[reason]++;
	}
	free(q.path);
	free(root);
}

bool prune_changes(const struct prune_archive *a)
{
	size_t n = 0;

	for (int i = PRUNE_STAYS + 1; i < PRUNE_REASONS; i++)
		n += a->n_entries[i];
	return n > 0;
}

/* Check that the tree and the list of GPUs are not the wrong ones. */
static bool check_rest(const struct prune *p)
{
	const struct arch_filter *filter = &p->args.filter;
	size_t n[PRUNE_REASONS] = {0}, matched = 0;

	for (size_t i = 0; i < p->n_archives; i++)
		for (int k = 0; k < PRUNE_REASONS; k++)
			n[k] += p->archives[i].n_entries[k];
	for (size_t i = 0; i < filter->chosen.count; i++)
		matched += filter->matched[i];
	if (n[PRUNE_OTHER_GPU] && !matched) {
		report_error(p->args.tree,
			     "no code is for the wanted GPUs: nothing is removed; see "
			     "kpack detect");
		return false;
	}
	/* a part with the archives of a GPU has no host binaries: the generic one has them */
	if (n[PRUNE_STAYS] || p->args.force || p->demand.has_hosts || n[PRUNE_GONE] == 0)
		return true;
	report_error(p->args.tree,
		     "nothing in it needs its archives, as if it were a part of a tree: "
		     "nothing is removed; --force removes all archives");
	return false;
}

/* --- a run --------------------------------------------------------------------------- */

/* Frames are copied as they are stored: one that is damaged would look like a new one. */
static bool check_archives(const struct prune *p)
{
	bool any = false, fine = true;

	for (size_t i = 0; i < p->n_archives; i++)
		any |= prune_changes(&p->archives[i]);
	for (size_t i = 0; i < p->n_archives && any; i++)
		fine &= check_content(p->archives[i].archive->archive, NULL, CHECK_BYTES,
				      0);
	if (!fine)
		report_error(
			p->args.tree,
			"nothing was removed, because its archives are damaged: pack "
			"the original files again");
	return fine;
}

static int change_archives(struct prune *p)
{
	for (size_t i = 0; i < p->n_archives; i++) {
		struct prune_archive *a = &p->archives[i];
		struct kpackx_error why = {0};

		if (!prune_changes(a))
			continue;
		if (p->args.dry || !check_unchanged(a->path, a->archive->archive, &why))
			prune_rewrite(a, p->args.dry, &why);
		if (why.code) {
			report_why(a->path, &why);
			return EXIT_FAULT;
		}
	}
	return EXIT_OK;
}

/* Remove leftovers of killed runs, where a lock keeps out other runs. */
static int remove_leftovers(struct prune *p)
{
	for (size_t i = 0; i < p->n_dirs && !p->args.dry; i++) {
		struct kpackx_error why = {0};

		if (p->dirs[i].lock < 0 || !leftovers_remove(p->dirs[i].path, "", &why))
			continue;
		report_why(NULL, &why); /* it has the path */
		return EXIT_FAULT;
	}
	return EXIT_OK;
}

int prune_run(struct prune *p)
{
	int status = open_tree(p);

	if (status)
		return status;
	for (size_t i = 0; i < p->n_archives; i++)
		choose_entries(p, &p->archives[i]);
	if (!check_rest(p) || !check_archives(p))
		return EXIT_FAULT;
	status = change_archives(p);
	return status ? status : remove_leftovers(p);
}

void prune_close(struct prune *p)
{
	for (size_t i = 0; i < p->n_archives; i++) {
		free(p->archives[i].path);
		free(p->archives[i].reasons);
	}
	free(p->archives);
	for (size_t i = 0; i < p->n_dirs; i++) {
		lock_close(p->dirs[i].lock);
		free(p->dirs[i].path);
	}
	free(p->dirs);
	demand_fini(&p->demand);
	arch_filter_fini(&p->args.filter);
	*p = (struct prune){0};
}
