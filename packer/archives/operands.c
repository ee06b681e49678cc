/* SPDX-License-Identifier: MIT */
/*
 * Operands are what a user would name: an archive, a directory of archives, or a packed tree, whose
 * archives are in ".kpack".  A directory without archives is a fault and not an empty list, because
 * a misspelt path would pass as "nothing wrong" in kpack verify.  Each directory is a root of
 * packer/files/below.h from here on, so that its archives are opened without following links.
 */
#include "operands.h"
#include <stdlib.h>
#include "packer/cli/xalloc.h"
#include "packer/cli/exit.h"
#include "packer/cli/report.h"
#include "core/view/view.h"
#include "core/archive/naming.h"
#include "packer/files/below.h"

/* --- operands --------------------------------------------------------------------- */

/*
 * Call FN with the archives of OPERAND, and, as those of a packed tree are in its
 * ".kpack", with those of this directory.
 */
static bool operand_paths(char *operand, void (*fn)(const char *path, void *arg),
			  void *arg)
{
	char *inner = xasprintf("%s/" KP_ARCHIVES_DIR, operand);
	const char *places[] = {operand, inner};
	struct kpackx_error why = {0};
	size_t all = 0;
	bool ok = !below_root_if_directory(operand, &why);
	struct stat st;

	for (size_t i = 0; i < KP_COUNT(places) && ok; i++) {
		char **paths = NULL;
		size_t count = 0;

		if (i && (below_stat(inner, &st) < 0 || !S_ISDIR(st.st_mode)))
			break;
		ok = !below_archives_find(places[i], &paths, &count, &why);
		for (size_t k = 0; k < count; k++) {
			fn(paths[k], arg);
			free(paths[k]);
		}
		free(paths);
		all += count;
	}
	free(inner);
	if (!ok)
		report_why(operand, &why);
	else if (all == 0)
		report_error(operand, "no archives (*.kpack) in it");
	return ok && all;
}

bool archives_paths(int n, char **operands, void (*fn)(const char *path, void *arg),
		    void *arg)
{
	bool ok = true;

	for (int i = 0; i < n; i++)
		ok &= operand_paths(operands[i], fn, arg);
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
	*set = (struct archives){0};
	if (!archives_paths(n, operands, open_one, set))
		set->failed = true;
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
