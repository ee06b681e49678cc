/* SPDX-License-Identifier: MIT */
#include "inherited_archives.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/path.h"
#include "packer/archives/operands.h"
#include "packer/archives/content.h"
#include "packer/files/below.h"
#include "packer/files/copy.h"
#include "packer/cli/xalloc.h"
#include "core/view/view.h"
#include "core/archive/naming.h"

/* --- comparing contents -------------------------------------------------------------- */

/* Check that B has every entry of A. */
static kpack_error_t check_has(const struct kpack_archive *a,
			       const struct kpack_archive *b, struct kpackx_error *why)
{
	for (size_t i = 0; i < kp_archive_entry_count(a); i++) {
		struct kp_entry_info info;
		size_t k;
		bool same;

		kp_archive_entry(a, i, &info);
		same = kp_archive_find(b, info.key, info.arch, &k);
		if (same)
			KP_TRY(content_hash_same(a, i, b, k, &same, why));
		if (!same)
			return kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
				       "already exists, without the %.*s %.*s of %s: "
				       "remove it, or give another OUTPUT",
				       (int)info.key.size, info.key.data,
				       (int)info.arch.size, info.arch.data,
				       kp_archive_path(a));
	}
	return KPACK_SUCCESS;
}

static kpack_error_t check_there(const char *from, const char *to,
				 struct kpackx_error *why)
{
	struct kpack_archive *a = NULL, *b = NULL;
	kpack_error_t err = below_archive_open(from, &a, why);

	if (!err)
		err = below_archive_open(to, &b, why);
	if (!err)
		err = check_has(a, b, why);
	kp_archive_close(a);
	kp_archive_close(b);
	return err;
}

/* --- files of databases -------------------------------------------------------------- */

/* A file that an archive shows at a path. */
struct shown {
	struct kp_span path;
	const struct kpack_archive *archive;
	size_t entry;
};

struct shown_list {
	struct shown *items;
	size_t n, cap;
};

/* Open the archives of DIR that can be read. */
static kpack_error_t open_archives(const char *dir, struct archives *set,
				   struct kpackx_error *why)
{
	char **paths = NULL;
	size_t n = 0;

	KP_TRY(below_archives_find(dir, &paths, &n, why));
	set->items = xcalloc(n, sizeof(struct kpack_archive *));
	for (size_t i = 0; i < n; i++) {
		if (!below_archive_open(paths[i], &set->items[set->count], NULL))
			set->count++;
		free(paths[i]);
	}
	free(paths);
	return KPACK_SUCCESS;
}

static int by_path(const void *a, const void *b)
{
	const struct shown *x = a, *y = b;

	return kp_span_cmp(x->path, y->path);
}

static void list_shown(const struct archives *set, struct shown_list *list)
{
	for (size_t i = 0; i < set->count; i++) {
		for (size_t k = 0; k < kp_archive_entry_count(set->items[i]); k++) {
			struct kp_meta meta;

			kp_archive_meta(set->items[i], k, &meta);
			if (meta.path.size == 0)
				continue;
			xgrow(&list->items, list->n, &list->cap, sizeof(*list->items));
			list->items[list->n++] =
				(struct shown){meta.path, set->items[i], k};
		}
	}
	if (list->n)
		qsort(list->items, list->n, sizeof(*list->items), by_path);
}

static const char *name_of(const struct kpack_archive *a)
{
	return kp_path_name(kp_archive_path(a));
}

/*
 * Compare two files at one path, unless their archives have the same name: these are
 * compared as a whole.
 */
static kpack_error_t compare_shown(const struct shown *x, const struct shown *y,
				   struct kpackx_error *why)
{
	bool same = strcmp(name_of(x->archive), name_of(y->archive)) == 0;

	if (!same)
		KP_TRY(content_hash_same(x->archive, x->entry, y->archive, y->entry,
					 &same, why));
	return same ? KPACK_SUCCESS
		    : kp_fail(why, KPACK_ERROR_INVALID_ARGUMENT,
			      "%.*s: other bytes in %s than in %s: one path cannot have "
			      "both; remove one of the archives",
			      (int)x->path.size, x->path.data,
			      kp_archive_path(x->archive), kp_archive_path(y->archive));
}

static kpack_error_t compare_all(const struct shown_list *a, const struct shown_list *b,
				 struct kpackx_error *why)
{
	for (size_t i = 0, first = 0; i < a->n; i++) {
		while (first < b->n && by_path(&b->items[first], &a->items[i]) < 0)
			first++;
		for (size_t k = first;
		     k < b->n && by_path(&b->items[k], &a->items[i]) == 0; k++)
			KP_TRY(compare_shown(&a->items[i], &b->items[k], why));
	}
	return KPACK_SUCCESS;
}

/* Check that no file would be shown twice with different bytes. */
static kpack_error_t check_shown(const char *from, const char *to,
				 struct kpackx_error *why)
{
	struct archives theirs = {0}, ours = {0};
	struct shown_list a = {0}, b = {0};
	kpack_error_t err = open_archives(from, &theirs, why);

	if (!err)
		err = open_archives(to, &ours, why);
	if (!err) {
		list_shown(&theirs, &a);
		list_shown(&ours, &b);
		err = compare_all(&a, &b, why);
	}
	free(a.items);
	free(b.items);
	archives_close(&theirs);
	archives_close(&ours);
	return err;
}

/* --- the directory ------------------------------------------------------------------- */

static kpack_error_t copy_archive(const char *from, const char *to,
				  struct kpackx_error *why)
{
	struct file_identity seen;
	struct stat st, there;

	if (below_lstat(from, &st) < 0)
		return below_fail(why, "%s", from);
	if (S_ISDIR(st.st_mode))
		return KPACK_SUCCESS;
	if (below_lstat(to, &there) == 0)
		return check_there(from, to, why);
	seen = file_identity_of(&st);
	return copy_seen(from, S_ISLNK(st.st_mode) || S_ISREG(st.st_mode) ? &seen : NULL,
			 to, why);
}

static kpack_error_t copy_named_archive(const char *from, const char *to,
					const char *name, struct kpackx_error *why)
{
	char *a = xasprintf("%s/%s", from, name), *b = xasprintf("%s/%s", to, name);
	kpack_error_t err = copy_archive(a, b, why);

	if (err)
		kp_fail_prefix(why, err, "%s", b);
	free(a);
	free(b);
	return err;
}

kpack_error_t inherit_archives(const char *from, const char *to, struct kpackx_error *why)
{
	kpack_error_t err = check_shown(from, to, why);
	char **paths = NULL;
	size_t n = 0;

	if (!err)
		err = below_archives_find(from, &paths, &n, why);
	for (size_t i = 0; i < n; i++) {
		if (!err)
			err = copy_named_archive(from, to, kp_path_name(paths[i]), why);
		free(paths[i]);
	}
	free(paths);
	return err;
}
