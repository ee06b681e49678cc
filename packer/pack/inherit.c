/* SPDX-License-Identifier: MIT */
/*
 * Inheriting archives: converted binaries of the input tree need its archives, so the output
 * gets copies.  The output may have archives already, from an earlier run or of another tree:
 * one of the same name must have all that ours has, and no path may be shown with other bytes.
 * The paths are compared before the first copy.
 */
#include <stdlib.h>
#include "archive_set.h"
#include "core/archive/archive.h"
#include "core/base/alloc.h"
#include "core/base/order.h"
#include "core/base/path.h"
#include "packer/archives/content.h"
#include "packer/cli/report.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/files/copy.h"

/* --- what archives show -------------------------------------------------------------- */

kpack_error_t shown_files_open(const char *dir, struct shown_files *out,
			       struct kpackx_error *why)
{
	char **paths = NULL;
	size_t n = 0;

	KP_TRY(below_archives_find(dir, &paths, &n, why));
	out->archives = xcalloc(n, sizeof(*out->archives));
	for (size_t i = 0; i < n; i++) {
		struct kpackx_error fault = {0};
		struct kpack_archive *a;

		if (below_archive_open(paths[i], &a, &fault)) {
			out->unreadable = true;
			if (out->reports)
				report_why(paths[i], &fault);
		} else {
			out->archives[out->n_archives++] = a;
			for (size_t k = 0; k < kp_archive_entry_count(a); k++) {
				struct kp_meta meta;

				kp_archive_meta(a, k, &meta);
				if (meta.path.size == 0)
					continue;
				xgrow(&out->items, out->n, &out->cap,
				      sizeof(*out->items));
				out->items[out->n++] = (struct shown){meta.path, a, k};
			}
		}
		free(paths[i]);
	}
	free(paths);
	kp_sort(out->items, out->n, KP_BY_SPAN(struct shown, path));
	return KPACK_SUCCESS;
}

void shown_files_close(struct shown_files *list)
{
	for (size_t i = 0; i < list->n_archives; i++)
		kp_archive_close(list->archives[i]);
	free(list->archives);
	free(list->items);
}

kpack_error_t inherit_archives(const char *from, const char *to, struct kpackx_error *why)
{
	struct shown_files a = {0}, b = {0};
	kpack_error_t err = shown_files_open(from, &a, why);
	char **paths = NULL;
	size_t n = 0;

	if (!err)
		err = shown_files_open(to, &b, why);
	/* no file may be shown twice with other bytes; archives of one name are compared as a whole */
	for (size_t i = 0; i < a.n && !err; i++) {
		const struct shown *x = &a.items[i];
		size_t k =
			kp_lower_bound(b.items, b.n, x, KP_BY_SPAN(struct shown, path));

		for (; k < b.n && kp_span_eq(b.items[k].path, x->path) && !err; k++) {
			const struct shown *y = &b.items[k];
			const char *ours = kp_archive_path(x->archive);
			const char *theirs = kp_archive_path(y->archive);
			bool same = strcmp(kp_path_name(ours), kp_path_name(theirs)) == 0;

			if (!same)
				err = content_hash_same(x->archive, x->entry, y->archive,
							y->entry, &same, why);
			if (!err && !same)
				err = kp_fail(
					why, KPACK_ERROR_INVALID_ARGUMENT,
					"%.*s: other bytes in %s than in %s: one path "
					"cannot have both; remove one of the archives",
					(int)x->path.size, x->path.data, ours, theirs);
		}
	}
	shown_files_close(&a);
	shown_files_close(&b);
	if (!err)
		err = below_archives_find(from, &paths, &n, why);
	for (size_t i = 0; i < n; i++) {
		const char *name = kp_path_name(paths[i]);
		KP_AUTO_FREE char *source = xasprintf("%s/%s", from, name),
				  *target = xasprintf("%s/%s", to, name);
		struct kpack_archive *ours = NULL, *theirs = NULL;
		struct file_identity seen;
		struct stat st = {0}, there;

		free(paths[i]);
		if (err)
			continue;
		if (below_lstat(source, &st) < 0) {
			err = below_fail(why, "%s", source);
		} else if (S_ISDIR(st.st_mode)) {
			continue;
		} else if (below_lstat(target, &there) < 0) {
			/* one that cannot be read, too: what names it names the copy then */
			bool file = S_ISLNK(st.st_mode) || S_ISREG(st.st_mode);

			seen = file_identity_of(&st);
			err = copy_seen(source, file ? &seen : NULL, target, why);
		} else { /* it stays, and must have every entry of ours */
			err = below_archive_open(source, &ours, why);
			if (!err)
				err = below_archive_open(target, &theirs, why);
		}
		for (size_t e = 0, k; !err && theirs && e < kp_archive_entry_count(ours);
		     e++) {
			struct kp_entry_info info;
			bool same;

			kp_archive_entry(ours, e, &info);
			same = kp_archive_find(theirs, info.key, info.arch, &k);
			if (same)
				err = content_hash_same(ours, e, theirs, k, &same, why);
			if (!err && !same)
				err = kp_fail(
					why, KPACK_ERROR_INVALID_ARGUMENT,
					"already exists, without the %.*s %.*s of %s: "
					"remove it, or give another OUTPUT",
					(int)info.key.size, info.key.data,
					(int)info.arch.size, info.arch.data,
					kp_archive_path(ours));
		}
		kp_archive_close(ours);
		kp_archive_close(theirs);
		if (err)
			kp_fail_prefix(why, err, "%s", target);
	}
	free(paths);
	return err;
}
