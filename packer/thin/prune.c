/* SPDX-License-Identifier: MIT */
/*
 * A run of kpack prune.  First the tree is walked: its binaries say which archives they reach and
 * what they ask for.  Then the directories of its archives are locked, so that no other run changes
 * them, and the binaries looked at once more.  Each archive of which something goes is written
 * anew and takes the place of the old one; an archive without entries is removed.
 */
#include "prune.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/archive/naming.h"
#include "core/base/path.h"
#include "packer/archives/content.h"
#include "packer/archives/merge.h"
#include "packer/cli/exit.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/attributes.h"
#include "packer/files/below.h"
#include "packer/files/leftovers.h"
#include "packer/files/lock.h"
#include "packer/files/tree_list.h"
#include "keep.h"

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
	struct candidate *items; /* by directory, then by name */
	size_t count, cap;
};

static void report_file(struct prune *p, const char *path, const struct kpackx_error *why)
{
	report_why(path, why);
	p->n_faults++;
}

static int by_directory(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int c = kp_span_cmp(kp_path_directory(x->path), kp_path_directory(y->path));

	return c ? c : strcmp(x->path, y->path);
}

/* Take the binaries of the tree, and list what may be its archives. */
static void walk_tree(struct prune *p, struct candidates *list)
{
	struct tree_list *tree = tree_list_open(p->args.tree);
	struct tree_item item;

	while (tree_list_next(tree, &item)) {
		struct kpackx_error why = {0};

		if (item.kind == TREE_FAULT) {
			report_error(item.path, "%s", strerror(item.error));
			p->n_faults++;
		} else if (item.kind != TREE_OTHER || !S_ISREG(item.st.st_mode)) {
			continue;
		} else if (kp_is_archive_name(item.name)) {
			xgrow(&list->items, list->count, &list->cap,
			      sizeof(*list->items));
			list->items[list->count++] =
				(struct candidate){.path = xstrdup(item.path),
						   .dev = item.st.st_dev,
						   .ino = item.st.st_ino};
		} else if (demand_add(&p->demand, item.path, &why)) {
			report_file(p, item.path, &why);
		}
	}
	tree_list_close(tree);
	demand_sort(&p->demand);
	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), by_directory);
}

/* The first candidate behind those in the directory of number FIRST. */
static size_t end_of_directory(const struct candidates *list, size_t first)
{
	struct kp_span dir = kp_path_directory(list->items[first].path);
	size_t end = first + 1;

	while (end < list->count &&
	       kp_span_eq(dir, kp_path_directory(list->items[end].path)))
		end++;
	return end;
}

/*
 * The archives of the tree are in directories ".kpack", or in directories where its
 * binaries find archives.  Lock these directories.
 */
static void find_own(struct prune *p, struct candidates *list)
{
	for (size_t i = 0, end; i < list->count; i = end) {
		bool own = kp_is_archive_of_tree(list->items[i].path);
		struct kpackx_error why = {0};
		struct prune_dir *d;
		struct kp_span dir;

		end = end_of_directory(list, i);
		for (size_t k = i; k < end; k++) {
			struct candidate *c = &list->items[k];

			for (size_t n = 0; n < p->demand.set.count; n++)
				if (p->demand.set.archives[n]->dev == c->dev &&
				    p->demand.set.archives[n]->ino == c->ino)
					c->reached = p->demand.set.archives[n];
			own |= c->reached != NULL;
		}
		for (size_t k = i; k < end; k++)
			list->items[k].own = own;
		if (!own)
			continue;
		dir = kp_path_directory(list->items[i].path);
		xgrow(&p->dirs, p->n_dirs, &p->dirs_cap, sizeof(*p->dirs));
		d = &p->dirs[p->n_dirs++];
		d->path = xstrndup((const char *)dir.data, dir.size);
		if (leftovers_lock(d->path, &d->lock, &why))
			report_file(p, NULL, &why); /* it has the path */
	}
}

/* Check that the file at PATH is what was opened as A. */
static kpack_error_t check_unchanged(const char *path, const struct kpack_archive *a,
				     struct kpackx_error *why)
{
	const struct file_identity was = file_identity_of(kp_archive_stat(a));
	struct stat st;

	if (below_lstat(path, &st) < 0)
		return below_fail(why, "cannot look at it");
	return file_identity_is(&was, &st)
		       ? KPACK_SUCCESS
		       : kp_fail(why, KPACK_ERROR_IO_ERROR,
				 "changed meanwhile: run kpack prune again");
}

static kpack_error_t add_archive(struct prune *p, const struct candidate *c,
				 struct kpackx_error *why)
{
	struct prune_archive a = {.archive = c->reached};
	size_t kept, faults;

	if (!a.archive) {
		struct reach unused = {0};
		kpack_error_t err = installed_add(&p->demand.set, c->path, &unused, why);

		if (!err)
			a.archive = unused.items[0].archive;
		reach_fini(&unused);
		KP_TRY(err);
	}
	if (!a.archive->archive) {
		*why = a.archive->why;
		return why->code;
	}
	KP_TRY(check_unchanged(c->path, a.archive->archive, why));
	kp_archive_faults(a.archive->archive, &kept, &faults);
	if (faults)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "it has faults and cannot be copied; kpack verify names "
			       "them");
	/* what kpack thin --keep keeps may be there, too: only --undo knows when it goes */
	for (size_t i = 0; i < kp_archive_entry_count(a.archive->archive); i++)
		if (keep_is_recipe(a.archive->archive, i))
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

static int open_tree(struct prune *p)
{
	struct candidates list = {0};
	const char *changed;
	int error = 0;

	demand_init(&p->demand, p->args.tree);
	walk_tree(p, &list);
	find_own(p, &list);
	/* another run may have written archives, for binaries that it wrote after our look */
	changed = demand_changed(&p->demand, &error);
	if (changed) {
		if (error && error != ENOENT)
			report_error(changed, "cannot look at it: %s", strerror(error));
		else
			report_error(changed, "changed meanwhile: run kpack prune again");
		p->n_faults++;
	}
	for (size_t i = 0; i < list.count; i++) {
		struct kpackx_error why = {0};

		if (list.items[i].own && add_archive(p, &list.items[i], &why))
			report_file(p, list.items[i].path, &why);
		free(list.items[i].path);
	}
	free(list.items);
	if (p->n_faults)
		report_error(p->args.tree,
			     "nothing was removed because of the faults above");
	return p->n_faults ? EXIT_FAULT : EXIT_OK;
}

/* --- what goes ----------------------------------------------------------------------- */

static enum prune_reason reason_of(struct prune *p, const struct prune_archive *a,
				   struct demand_query *q, size_t entry)
{
	struct kp_entry_info info;
	enum prune_reason reason;
	bool drops;

	/* also of what goes anyway: it shows that the list of GPUs is not wrong */
	kp_archive_entry(a->archive->archive, entry, &info);
	drops = arch_filter_given(&p->args.filter) &&
		arch_filter_drops(&p->args.filter, info.arch);
	reason = demand_of(q, entry);
	return reason == PRUNE_STAYS && drops ? PRUNE_OTHER_GPU : reason;
}

/* Decide for each entry of A, in order: names that follow each other are looked for once. */
static void choose_entries(struct prune *p, struct prune_archive *a)
{
	struct kp_span dir = kp_path_directory(a->path);
	/* the directory that the names are relative to, if the archive's place says that */
	char *root = kp_is_archive_of_tree(a->path)
			     ? xstrndup(a->path, dir.size - strlen(KP_ARCHIVES_DIR))
			     : NULL;
	struct demand_query q = {
		.demand = &p->demand, .archive = a->archive, .root = root};

	for (size_t i = 0; i < kp_archive_entry_count(a->archive->archive); i++) {
		enum prune_reason reason = reason_of(p, a, &q, i);

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

/* Check that the tree and the list of GPUs are not the wrong ones, and the archives whole. */
static bool check_choice(const struct prune *p)
{
	const struct arch_filter *filter = &p->args.filter;
	size_t n[PRUNE_REASONS] = {0}, matched = 0;
	bool any = false, fine = true;

	for (size_t i = 0; i < p->n_archives; i++) {
		any |= prune_changes(&p->archives[i]);
		for (int k = 0; k < PRUNE_REASONS; k++)
			n[k] += p->archives[i].n_entries[k];
	}
	for (size_t i = 0; i < filter->chosen.count; i++)
		matched += filter->matched[i];
	if (n[PRUNE_OTHER_GPU] && !matched) {
		report_error(p->args.tree,
			     "no code is for the wanted GPUs: nothing is removed; see "
			     "kpack detect");
		return false;
	}
	/* a part with the archives of a GPU has no host binaries: the generic one has them */
	if (!n[PRUNE_STAYS] && !p->args.force && !p->demand.has_hosts && n[PRUNE_GONE]) {
		report_error(p->args.tree,
			     "nothing in it needs its archives, as if it were a part of "
			     "a tree: "
			     "nothing is removed; --force removes all archives");
		return false;
	}
	/* frames are copied as they are stored: one that is damaged would look like a new one */
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

/* --- an archive ---------------------------------------------------------------------- */

static bool takes_entry(const void *arg, size_t source, const struct kp_entry_info *info)
{
	const struct prune_archive *a = arg;
	size_t entry;

	(void)source;
	return kp_archive_find(a->archive->archive, info->key, info->arch, &entry) &&
	       a->reasons[entry] == PRUNE_STAYS;
}

/* Replace A by the archive of PLAN, with its owner, permissions and attributes, but times of its own. */
static kpack_error_t replace_archive(struct prune_archive *a, struct merge_plan *plan,
				     struct kpackx_error *why)
{
	const struct kpack_archive *old = a->archive->archive;
	const char *name = kp_path_name(a->path);
	char *dir = xstrndup(a->path, kp_path_directory(a->path).size);
	struct kpack_archive *new = NULL;
	struct kp_writer *w = NULL;
	struct merge_stats stats;
	struct stat st;
	kpack_error_t err = merge_plan_write(plan, dir, name, &w, why);

	if (!err)
		err = kp_writer_reopen(w, name, &new, why);
	if (!err)
		err = attributes_copy(kp_archive_fd(old), kp_archive_fd(new),
				      kp_archive_stat(old), why);
	if (!err && futimens(kp_archive_fd(new), NULL) < 0)
		err = kp_fail_errno(why, errno, "cannot set the time");
	kp_archive_close(new);
	if (!err)
		err = kp_writer_publish(w, why);
	kp_writer_close(w);
	merge_plan_stats(plan, &stats);
	a->blocks_copied = stats.blocks_copied;
	a->blocks_encoded = stats.blocks_encoded;
	free(dir);
	if (!err && below_lstat(a->path, &st) == 0)
		a->after = (uint64_t)st.st_size;
	return err;
}

/* Write A without what goes, or remove it if nothing stays; DRY: only find its new size. */
static kpack_error_t change_archive(struct prune_archive *a, bool dry,
				    struct kpackx_error *why)
{
	const struct kpack_archive *old = a->archive->archive;
	const struct merge_source source = {.archive = old, .checked = true};
	struct kp_span family = kp_archive_family(old), group = kp_archive_group(old);
	struct merge_options options = {.takes = takes_entry, .takes_arg = a};
	struct merge_plan *plan = NULL;
	struct merge_stats stats;
	char *name, *of;
	kpack_error_t err;

	if (!dry)
		KP_TRY(check_unchanged(a->path, old, why));
	if (a->n_entries[PRUNE_STAYS] == 0) {
		a->after = 0;
		return !dry && below_unlink(a->path) < 0
			       ? below_fail(why, "cannot remove")
			       : KPACK_SUCCESS;
	}
	name = xstrndup((const char *)family.data, family.size);
	of = xstrndup((const char *)group.data, group.size);
	options.family = family.size ? name : NULL;
	options.group = of;
	err = merge_plan_new(&source, 1, &options, &plan, why);
	if (!err) {
		merge_plan_stats(plan, &stats);
		a->after = a->before - (kp_archive_blob_size(old) > stats.bytes
						? kp_archive_blob_size(old) - stats.bytes
						: 0);
		if (!dry)
			err = replace_archive(a, plan, why);
	}
	merge_plan_free(plan);
	free(name);
	free(of);
	return err;
}

/* --- a run --------------------------------------------------------------------------- */

int prune_run(struct prune *p)
{
	int status = open_tree(p);
	struct kpackx_error why = {0};

	if (status)
		return status;
	for (size_t i = 0; i < p->n_archives; i++)
		choose_entries(p, &p->archives[i]);
	if (!check_choice(p))
		return EXIT_FAULT;
	/* one after the other, each whole: a killed run leaves archives without what nothing needs */
	for (size_t i = 0; i < p->n_archives; i++) {
		struct prune_archive *a = &p->archives[i];

		if (!prune_changes(a) || !change_archive(a, p->args.dry, &why))
			continue;
		report_why(a->path, &why);
		return EXIT_FAULT;
	}
	/* leftovers of killed runs, where a lock keeps out other runs */
	for (size_t i = 0; i < p->n_dirs && !p->args.dry; i++) {
		if (p->dirs[i].lock < 0 || !leftovers_remove(p->dirs[i].path, "", &why))
			continue;
		report_why(NULL, &why); /* it has the path */
		return EXIT_FAULT;
	}
	return EXIT_OK;
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
