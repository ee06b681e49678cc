/* SPDX-License-Identifier: MIT */
#include "tree_databases.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/file.h"
#include "core/base/path.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "packer/files/below.h"
#include "core/target/target.h"

/* --- dispositions ------------------------------------------------------------------------ */

size_t databases_not_asked(const struct scan *scan, const struct plan *plan)
{
	bool *stored = xcalloc(scan->n_entries, 1);
	size_t n = 0;

	for (size_t i = 0; i < plan->n_objects; i++)
		stored[plan->objects[i].input->entry] = true;
	for (size_t i = 0; i < scan->n_entries; i++)
		n += scan->entries[i].database && !stored[i];
	free(stored);
	return n;
}

static void set_outcomes(const struct scan *scan, const struct plan *plan,
			 struct dispositions *dispositions)
{
	for (size_t i = 0; i < scan->n_entries; i++)
		if (scan->entries[i].database)
			disposition_set(&dispositions->items[i], FATE_NOT_WANTED,
					"not for the targets asked for");
	for (size_t i = 0; i < plan->n_objects; i++) {
		size_t entry = plan->objects[i].input->entry;

		if (scan->entries[entry].database)
			disposition_set(&dispositions->items[entry], FATE_PACKED, NULL);
	}
}

/*
 * Whether a file is for a selected target.  Files for generic targets stay in the tree
 * for every GPU, which does not depend on the filter.
 */
static bool is_selected(const struct library_object *o, struct arch_filter *filter)
{
	char target[KP_TARGET_TEXT_MAX];
	bool selected = false;

	for (size_t i = 0; i < o->n_arches; i++) {
		library_object_target(o, i, target);
		selected |= kp_generic_members(kp_span_str(target)) ||
			    arch_filter_match(filter, kp_span_str(target));
	}
	return selected;
}

void databases_leave_out(const struct scan *scan, struct arch_filter *filter,
			 struct dispositions *dispositions)
{
	for (size_t i = 0; scan->found.objects && i < scan->files.count; i++) {
		const struct library_object *o = scan->found.objects[i];

		if (o && !is_selected(o, filter))
			disposition_set(&dispositions->items[scan->file_entries[i]],
					FATE_NOT_WANTED, "not for the targets asked for");
	}
}

static int by_inode(const void *a, const void *b, void *arg)
{
	const struct scan_entry *entries = arg;
	size_t i = *(const size_t *)a, k = *(const size_t *)b;
	const struct scan_entry *x = &entries[i], *y = &entries[k];

	if (x->id.dev != y->id.dev)
		return KP_ORDER(x->id.dev, y->id.dev);
	if (x->id.ino != y->id.ino)
		return KP_ORDER(x->id.ino, y->id.ino);
	return KP_ORDER(i, k);
}

static bool same_file(const struct scan_entry *a, const struct scan_entry *b)
{
	return a->id.dev == b->id.dev && a->id.ino == b->id.ino;
}

/* Make paths of one file hard links in the copy, too. */
static void link_copies(struct scan *scan, struct dispositions *dispositions)
{
	size_t *links = xmalloc(scan->n_entries * sizeof(*links)), n = 0, end;

	for (size_t i = 0; i < scan->n_entries; i++)
		if (scan->entries[i].database && scan->entries[i].id.nlink > 1 &&
		    dispositions->items[i].fate != FATE_NOT_WANTED)
			links[n++] = i;
	qsort_r(links, n, sizeof(*links), by_inode, scan->entries);
	for (size_t i = 0; i < n; i = end) {
		for (end = i + 1; end < n && same_file(&scan->entries[links[i]],
						       &scan->entries[links[end]]);
		     end++)
			dispositions->items[links[end]].fate = FATE_LINKED;
		scan_chain(scan, links + i, end - i);
	}
	free(links);
}

void databases_decide(struct scan *scan, const struct plan *plan, bool keep,
		      struct dispositions *dispositions)
{
	if (keep)
		link_copies(scan, dispositions);
	else
		set_outcomes(scan, plan, dispositions);
}

/* Whether every target of O is one that FILTER drops. */
static bool is_dropped(const struct library_object *o, struct arch_filter *filter)
{
	char target[KP_TARGET_TEXT_MAX];
	bool dropped = o->n_arches > 0;

	for (size_t i = 0; i < o->n_arches; i++) {
		library_object_target(o, i, target);
		dropped &= arch_filter_drops(filter, kp_span_str(target));
	}
	return dropped;
}

void databases_remove_others(const struct scan *scan, struct arch_filter *filter,
			     struct dispositions *dispositions)
{
	for (size_t i = 0; scan->found.objects && i < scan->files.count; i++) {
		const struct library_object *o = scan->found.objects[i];
		struct disposition *d = &dispositions->items[scan->file_entries[i]];

		if (!o || d->fate != FATE_NOT_WANTED)
			continue;
		if (is_dropped(o, filter))
			disposition_set(d, FATE_REMOVED, NULL);
		else
			disposition_set(d, FATE_LEFT_ALONE,
					"not for the targets asked for");
	}
}

/* --- in place ------------------------------------------------------------------------ */

static bool file_goes(const struct disposition *o)
{
	return o->fate == FATE_PACKED || o->fate == FATE_REMOVED;
}

/* Returns the bytes of PATH before its last component. */
static size_t dir_size(const char *path)
{
	return (size_t)(kp_path_name(path) - path);
}

static bool same_dir(const char *a, const char *b)
{
	return a && dir_size(a) == dir_size(b) && strncmp(a, b, dir_size(a)) == 0;
}

static char *dir_of(const char *path)
{
	size_t n = dir_size(path);

	return n ? xstrndup(path, n) : xstrdup(".");
}

/*
 * Check that files may be removed from the directory of PATH, whose stat is put into ST.
 */
static kpack_error_t check_dir(const char *path, struct stat *st,
			       struct kpackx_error *why)
{
	char *dir = dir_of(path);
	kpack_error_t err = KPACK_SUCCESS;

	if (below_access(dir, W_OK | X_OK) < 0 || below_lstat(dir, st) < 0)
		err = below_fail(why, "cannot be removed from its directory%s",
				 errno == EROFS ? ", which is read-only (a mount?)" : "");
	free(dir);
	return err;
}

/*
 * From a sticky directory only the owner of the file or of the directory may remove it.
 */
static kpack_error_t check_owner(const struct stat *dir, const struct stat *st,
				 struct kpackx_error *why)
{
	uid_t self = geteuid();

	if (!(dir->st_mode & S_ISVTX) || self == 0 || self == dir->st_uid ||
	    self == st->st_uid)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_IO_ERROR,
		       "belongs to user %u: only that user can remove it",
		       (unsigned)st->st_uid);
}

void databases_check(const struct scan *scan, const struct dispositions *dispositions,
		     size_t *faults)
{
	const char *last = NULL;
	bool removable = false;
	struct stat dir, st;

	for (size_t i = 0; i < scan->n_entries; i++) {
		const struct scan_entry *e = &scan->entries[i];
		struct kpackx_error fault = {0};
		kpack_error_t err = KPACK_SUCCESS;

		if (!file_goes(&dispositions->items[i]))
			continue;
		if (!same_dir(last, e->path)) {
			err = check_dir(e->path, &dir, &fault);
			removable = !err;
		}
		last = e->path;
		if (removable && below_lstat(e->path, &st) == 0)
			err = check_owner(&dir, &st, &fault);
		if (err) {
			report_why(e->path, &fault);
			++*faults;
		}
	}
}

static kpack_error_t flush_dir(const char *path, struct kpackx_error *why)
{
	kpack_error_t err = KPACK_SUCCESS;
	char *dir = dir_of(path);
	int fd = below_open(dir, O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0 || kp_flush_dir(fd))
		err = below_fail(why, "%s: cannot flush", dir);
	if (fd >= 0)
		close(fd);
	free(dir);
	return err;
}

/* Remove the file unless it was changed meanwhile: no archive has the changes. */
static kpack_error_t remove_one(const struct scan_entry *e, struct kpackx_error *why)
{
	struct stat st;

	if (below_lstat(e->path, &st) < 0)
		return kp_fail_prefix(why, below_fail(why, "cannot stat"), "%s", e->path);
	if (!file_identity_is_named(&e->id, &st))
		return kp_fail(why, KPACK_ERROR_IO_ERROR, "%s: was changed meanwhile",
			       e->path);
	if (below_unlink(e->path) < 0)
		return kp_fail_prefix(why, below_fail(why, "cannot remove"), "%s",
				      e->path);
	return KPACK_SUCCESS;
}

kpack_error_t databases_remove(const struct scan *scan,
			       const struct dispositions *dispositions,
			       struct kpackx_error *why)
{
	const char *last = NULL;

	for (size_t i = 0; i < scan->n_entries; i++) {
		const struct scan_entry *e = &scan->entries[i];

		if (!file_goes(&dispositions->items[i]))
			continue;
		if (last && !same_dir(last, e->path))
			KP_TRY(flush_dir(last, why));
		last = e->path;
		KP_TRY(remove_one(e, why));
	}
	return last ? flush_dir(last, why) : KPACK_SUCCESS;
}
