/* SPDX-License-Identifier: MIT */
#include "old_archives.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "old_archive.h"
#include "packer/cli/report.h"

static kpack_error_t remove_file(const struct split *s, const struct split_prefix *i,
				 const char *relative, struct kpackx_error *why)
{
	const struct split_tree *generic = split_tree_of(s, KP_ARCH_GENERIC);
	char *path = split_path(s, generic, i->prefix->path, relative);
	kpack_error_t err = KPACK_SUCCESS;

	if (below_unlink(path) < 0)
		err = below_fail(why, "%s: cannot remove", path);
	free(path);
	return err;
}

static bool has_other(const struct old_archive *archive, const struct arch_filter *filter)
{
	for (size_t i = 0; i < archive->n_arches; i++)
		if (!arch_filter_has(filter, kp_span_str(archive->arches[i])))
			return true;
	return false;
}

static kpack_error_t drop_if_unwanted(const struct split *s, struct split_prefix *i,
				      size_t entry, struct kpackx_error *why)
{
	const struct scan_entry *e = &i->packing.scan.entries[entry];
	struct arch_filter *filter = &i->packing.args.filter;
	struct old_archive archive;
	struct kpackx_error fault = {0};
	kpack_error_t err = KPACK_SUCCESS;

	if (old_archive_open(e->path, &i->packing.args.families, &archive, &fault)) {
		report_error(e->path, "warning: %s; it stays in the generic tree",
			     fault.text);
		return KPACK_SUCCESS;
	}
	i->n_old++;
	if (!old_archive_wanted(&archive, filter)) {
		i->n_old_dropped++;
		disposition_set(&i->packing.dispositions.items[entry], FATE_NOT_WANTED,
				"not for the requested targets");
		err = remove_file(s, i, e->relative, why);
	} else if (has_other(&archive, filter) && !s->args->quiet) {
		report_error(e->path, "note: also has code for other targets; it stays "
				      "as it is");
	}
	old_archive_close(&archive);
	return err;
}

kpack_error_t split_old_drop(const struct split *s, struct split_prefix *i,
			     struct kpackx_error *why)
{
	const struct scan *scan = &i->packing.scan;

	for (size_t k = 0; k < scan->n_entries; k++)
		if (old_archive_is(&scan->entries[k]))
			KP_TRY(drop_if_unwanted(s, i, k, why));
	return KPACK_SUCCESS;
}
