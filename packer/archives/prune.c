/* SPDX-License-Identifier: MIT */
/*
 * A run of kpack prune:
 *
 *	open_tree	its binaries say which archives they reach and what they ask for; the
 *			directories of its archives are locked, and the binaries looked at once
 *			more; archives are opened after that
 *	demand_of	each entry stays, or goes for a reason (prune_demand.c)
 *	check_choice	is this the right tree, and are its archives whole?
 *	change_archive	each archive of which something goes is written anew and takes the place
 *			of the old one; an archive without entries is removed
 *
 * The walk comes before the locks because only binaries say which directories those are; what
 * changed in between is found by looking again, and ends the run.  Everything that can be refused
 * is refused before the first archive changes.  Whatever is in doubt stays: an entry too many
 * costs room, and one too few breaks a program.
 */
#include "prune.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "content.h"
#include "core/archive/naming.h"
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/base/path.h"
#include "core/target/target.h"
#include "merge.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/copy.h"
#include "packer/files/below.h"
#include "packer/files/staging.h"
#include "packer/files/tree_list.h"
#include "packer/gpu/code_table.h"

/* --- the tree ------------------------------------------------------------------------ */

/* A file that is called like an archive. */
struct candidate {
	char *path;
	struct kp_span directory; /* in the path */
	dev_t dev;
	ino_t ino;
	struct installed_archive *reached; /* by a binary of the tree; or NULL */
};

static void report_fault(struct prune *p, const char *path,
			 const struct kpackx_error *why)
{
	report_why(path, why);
	p->n_faults++;
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

/*
 * Take an archive of the tree.  One that cannot be read, or not copied as a whole, is a fault that
 * ends the run: nobody knows what would be lost with it.
 */
static kpack_error_t add_archive(struct prune *p, const struct candidate *c,
				 struct kpackx_error *why)
{
	struct prune_archive a = {.archive = c->reached};
	const struct kpack_archive *opened;
	size_t kept, faults;

	if (!a.archive) {
		struct reach unused = {0};
		kpack_error_t err = installed_add(&p->demand.set, c->path, &unused, why);

		if (!err)
			a.archive = unused.items[0].archive;
		reach_fini(&unused);
		KP_TRY(err);
	}
	opened = a.archive->archive;
	if (!opened) {
		*why = a.archive->why;
		return why->code;
	}
	KP_TRY(check_unchanged(c->path, opened, why));
	kp_archive_faults(opened, &kept, &faults);
	if (faults)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "it has faults and cannot be copied; kpack verify names "
			       "them");
	/* what kpack thin --keep keeps may be there, too: only --undo knows when it goes */
	for (size_t i = 0; i < kp_archive_entry_count(opened); i++) {
		struct kp_entry_info info;

		kp_archive_entry(opened, i, &info);
		if (kp_span_is(info.type, "recipe") &&
		    kp_span_is(info.arch, KP_ARCH_GENERIC))
			return KPACK_SUCCESS;
	}
	a.path = xstrdup(c->path);
	a.relative = a.path + strlen(p->args.tree);
	a.relative += strspn(a.relative, "/");
	a.reasons = xcalloc(kp_archive_entry_count(opened) + 1, 1);
	a.before = a.after = (uint64_t)kp_archive_stat(opened)->st_size;
	xgrow(&p->archives, p->n_archives, &p->cap, sizeof(*p->archives));
	p->archives[p->n_archives++] = a;
	return KPACK_SUCCESS;
}

/*
 * Look at the tree.  Its binaries say what they ask for; its archives are those in directories
 * ".kpack", or in directories where its binaries find archives.  These directories are locked.
 */
static int open_tree(struct prune *p)
{
	struct tree_list *tree = tree_list_open(p->args.tree);
	struct candidate *list = NULL; /* by directory, then by name */
	size_t count = 0, cap = 0, end, n_own = 0;
	struct kpackx_error why = {0};
	struct tree_item item;
	const char *changed;
	int error = 0;

	demand_init(&p->demand, p->args.tree);
	while (tree_list_next(tree, &item)) {
		if (item.kind == TREE_FAULT) {
			report_error(item.path, "%s", strerror(item.error));
			p->n_faults++;
		} else if (item.kind != TREE_OTHER || !S_ISREG(item.st.st_mode)) {
			continue;
		} else if (kp_is_archive_name(item.name)) {
			char *path = xstrdup(item.path);

			xgrow(&list, count, &cap, sizeof(*list));
			list[count++] =
				(struct candidate){.path = path,
						   .directory = kp_path_directory(path),
						   .dev = item.st.st_dev,
						   .ino = item.st.st_ino};
		} else if (demand_add(&p->demand, item.path, &why)) {
			report_fault(p, item.path, &why);
		}
	}
	tree_list_close(tree);
	demand_sort(&p->demand);
	kp_sort(list, count, KP_BY_SPAN(struct candidate, directory),
		KP_BY_TEXT(struct candidate, path));
	for (size_t i = 0; i < count; i = end) {
		bool own = kp_is_archive_of_tree(list[i].path);
		struct kp_span dir = list[i].directory;

		for (end = i; end < count && kp_span_eq(list[end].directory, dir);
		     end++) {
			struct candidate *c = &list[end];

			for (size_t n = 0; n < p->demand.set.count; n++)
				if (p->demand.set.archives[n]->dev == c->dev &&
				    p->demand.set.archives[n]->ino == c->ino)
					c->reached = p->demand.set.archives[n];
			own |= c->reached != NULL;
		}
		if (own) {
			struct prune_dir *d;

			xgrow(&p->dirs, p->n_dirs, &p->dirs_cap, sizeof(*p->dirs));
			d = &p->dirs[p->n_dirs++];
			d->path = xstrndup((const char *)dir.data, dir.size);
			if (leftovers_lock(d->path, &d->lock, &why))
				report_fault(p, NULL, &why); /* it has the path */
		}
		for (size_t k = i; k < end; k++) {
			if (own)
				list[n_own++] = list[k];
			else
				free(list[k].path);
		}
	}
	/* another run may have written archives, for binaries that it wrote after our look */
	changed = demand_changed(&p->demand, &error);
	if (changed) {
		if (error && error != ENOENT)
			report_error(changed, "cannot look at it: %s", strerror(error));
		else
			report_error(changed, "changed meanwhile: run kpack prune again");
		p->n_faults++;
	}
	for (size_t i = 0; i < n_own; i++) {
		if (add_archive(p, &list[i], &why))
			report_fault(p, list[i].path, &why);
		free(list[i].path);
	}
	free(list);
	if (p->n_faults)
		report_error(p->args.tree,
			     "nothing was removed because of the faults above");
	return p->n_faults ? EXIT_FAULT : EXIT_OK;
}

/* --- what goes ----------------------------------------------------------------------- */

bool prune_changes(const struct prune_archive *a)
{
	return a->n_entries[PRUNE_OTHER_GPU] || a->n_entries[PRUNE_GONE] ||
	       a->n_entries[PRUNE_UNASKED];
}

/* Check that the tree and the list of GPUs are not the wrong ones, and the archives whole. */
static bool check_choice(const struct prune *p)
{
	const struct arch_filter *filter = &p->args.filter;
	KP_AUTO(code_table) table = {0};
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
		for (size_t i = 0; i < p->n_archives; i++)
			code_table_add_archive(&table, p->archives[i].archive->archive, i,
					       false);
		code_table_refuse(&table, p->args.tree,
				  "no code is for the wanted GPUs: nothing is removed");
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

/*
 * Write A without what goes, or remove it if nothing stays; DRY: only find its new size.  The new
 * archive has the owner, permissions and attributes of the old one, but times of its own.
 */
static kpack_error_t change_archive(struct prune_archive *a, bool dry,
				    struct kpackx_error *why)
{
	const struct kpack_archive *old = a->archive->archive;
	const struct merge_source source = {.archive = old, .checked = true};
	const struct merge_options options = {
		.family_of_first = true, .takes = takes_entry, .takes_arg = a};
	const char *name = kp_path_name(a->path);
	KP_AUTO_FREE char *dir = xstrndup(a->path, kp_path_directory(a->path).size);
	struct kpack_archive *new = NULL;
	struct merge_plan *plan = NULL;
	struct kp_writer *w = NULL;
	struct merge_stats stats;
	kpack_error_t err;
	struct stat st;

	if (!dry)
		KP_TRY(check_unchanged(a->path, old, why));
	if (a->n_entries[PRUNE_STAYS] == 0) {
		a->after = 0;
		return !dry && below_unlink(a->path) < 0
			       ? below_fail(why, "cannot remove")
			       : KPACK_SUCCESS;
	}
	err = merge_plan_new(&source, 1, &options, &plan, why);
	merge_plan_stats(plan, &stats);
	if (!err && kp_archive_blob_size(old) > stats.bytes)
		a->after = a->before - (kp_archive_blob_size(old) - stats.bytes);
	if (!err && !dry)
		err = merge_plan_write(plan, dir, name, &w, why);
	if (!err && w)
		err = kp_writer_reopen(w, name, &new, why);
	if (!err && w)
		err = attributes_copy(kp_archive_fd(old), kp_archive_fd(new),
				      kp_archive_stat(old), why);
	if (!err && w && futimens(kp_archive_fd(new), NULL) < 0)
		err = kp_fail_errno(why, errno, "cannot set the time");
	kp_archive_close(new);
	if (!err && w)
		err = kp_writer_publish(w, why);
	if (!err && w && below_lstat(a->path, &st) == 0)
		a->after = (uint64_t)st.st_size;
	kp_writer_close(w);
	merge_plan_stats(plan, &stats);
	a->blocks_copied = stats.blocks_copied;
	a->blocks_encoded = stats.blocks_encoded;
	merge_plan_free(plan);
	return err;
}

/* --- a run --------------------------------------------------------------------------- */

int prune_run(struct prune *p)
{
	int status = open_tree(p);
	struct kpackx_error why = {0};

	if (status)
		return status;
	for (size_t i = 0; i < p->n_archives; i++) {
		struct prune_archive *a = &p->archives[i];
		struct kp_span dir = kp_path_directory(a->path);
		/* the directory that names are relative to, if the archive's place says that */
		KP_AUTO_FREE char *root =
			kp_is_archive_of_tree(a->path)
				? xstrndup(a->path, dir.size - strlen(KP_ARCHIVES_DIR))
				: NULL;
		struct demand_query q = {
			.demand = &p->demand, .archive = a->archive, .root = root};

		/* in order: names that follow each other are looked for once */
		for (size_t e = 0; e < kp_archive_entry_count(a->archive->archive); e++) {
			enum prune_reason reason = demand_of(&q, e);
			struct kp_entry_info info;
			bool drops;

			/* also of what goes anyway: it shows that the list of GPUs is not wrong */
			kp_archive_entry(a->archive->archive, e, &info);
			drops = arch_filter_given(&p->args.filter) &&
				arch_filter_drops(&p->args.filter, info.arch);
			if (reason == PRUNE_STAYS && drops)
				reason = PRUNE_OTHER_GPU;
			a->reasons[e] = (uint8_t)reason;
			a->n_entries[reason]++;
		}
		free(q.path);
	}
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
