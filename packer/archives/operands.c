/* SPDX-License-Identifier: MIT */
/*
 * Operands are what a user would name: an archive, a directory of archives, or a packed tree, whose
 * archives are in ".kpack".  A directory without archives is a fault and not an empty list, because
 * a misspelt path would pass as "nothing wrong" in kpack verify.  Each directory is a root of
 * packer/files/below.h from here on, so that its archives are opened without following links.
 */
#include "operands.h"
#include <stdlib.h>
#include "core/base/alloc.h"
#include "packer/cli/xalloc.h"
#include "packer/cli/report.h"
#include "core/archive/naming.h"
#include "packer/files/below.h"

bool archives_paths(int n, char **operands, void (*fn)(const char *path, void *arg),
		    void *arg)
{
	bool ok = true;

	for (int i = 0; i < n; i++) {
		/* archives of a packed tree are in its ".kpack" */
		KP_AUTO_FREE char *inner = xasprintf("%s/" KP_ARCHIVES_DIR, operands[i]);
		const char *places[] = {operands[i], inner};
		struct kpackx_error why = {0};
		bool read = !below_root_if_directory(operands[i], &why);
		size_t all = 0, count;
		struct stat st;
		char **paths;

		for (size_t k = 0; k < KP_COUNT(places) && read; k++) {
			if (k && (below_stat(inner, &st) < 0 || !S_ISDIR(st.st_mode)))
				break;
			count = 0;
			paths = NULL;
			read = !below_archives_find(places[k], &paths, &count, &why);
			for (size_t m = 0; m < count; m++) {
				fn(paths[m], arg);
				free(paths[m]);
			}
			free(paths);
			all += count;
		}
		if (!read)
			report_why(operands[i], &why);
		else if (all == 0)
			report_error(operands[i], "no archives (*.kpack) in it");
		ok &= read && all;
	}
	return ok;
}

static void open_one(const char *path, void *arg)
{
	struct archives *set = arg;
	struct kpackx_error why = {0};
	struct kpack_archive *a = NULL;

	if (below_archive_open(path, &a, &why)) {
		report_why(path, &why);
		set->failed = true;
		return;
	}
	set->items = xrealloc(set->items, (set->count + 1) * sizeof(a));
	set->items[set->count++] = a;
}

void archives_open(struct archives *set, int n, char **operands)
{
	set->failed |= !archives_paths(n, operands, open_one, set);
}

void archives_close(struct archives *set)
{
	for (size_t i = 0; i < set->count; i++)
		kp_archive_close(set->items[i]);
	free(set->items);
	*set = (struct archives){0};
}

bool archives_refused(const struct kpack_archive *a, const struct kp_choice *asked)
{
	size_t kept, counted;
	const struct kp_fault *faults = kp_archive_faults(a, &kept, &counted);
	bool any = false;

	for (size_t i = 0; i < kept; i++) {
		if (!faults[i].refused || (asked && faults[i].arch.size &&
					   !kp_choice_has(asked, faults[i].arch)))
			continue;
		report_error(kp_archive_path(a), "%s", faults[i].text);
		any = true;
	}
	if (counted > kept) {
		report_error(kp_archive_path(a), "and %zu fault%s more", counted - kept,
			     plural(counted - kept));
		any = true;
	}
	return any;
}
