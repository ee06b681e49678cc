/* SPDX-License-Identifier: MIT */
#include "prune_rewrite.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "packer/cli/xalloc.h"
#include "packer/files/attributes.h"
#include "packer/files/below.h"
#include "packer/archives/merge.h"

static bool takes_entry(const void *arg, size_t source, const struct kp_entry_info *info)
{
	const struct prune_archive *a = arg;
	size_t entry;

	(void)source;
	return kp_archive_find(a->archive->archive, info->key, info->arch, &entry) &&
	       a->reasons[entry] == PRUNE_STAYS;
}

/* The new file is written with the old one's attributes, but its own times. */
static kpack_error_t keep_attributes(const struct prune_archive *a, struct kp_writer *w,
				     const char *name, struct kpackx_error *why)
{
	const struct kpack_archive *old = a->archive->archive;
	struct kpack_archive *new = NULL;
	kpack_error_t err;
	int fd;

	KP_TRY(kp_writer_reopen(w, name, &new, why));
	fd = kp_archive_fd(new);
	err = attributes_copy(kp_archive_fd(old), fd, kp_archive_stat(old), why);
	if (!err && futimens(fd, NULL) < 0)
		err = kp_fail_errno(why, errno, "cannot set the time");
	kp_archive_close(new);
	return err;
}

static kpack_error_t write_archive(struct prune_archive *a, struct merge_plan *plan,
				   struct kpackx_error *why)
{
	const char *slash = strrchr(a->path, '/');
	char *dir = xstrndup(a->path, (size_t)(slash - a->path));
	struct kp_writer *w = NULL;
	struct merge_stats stats;
	struct stat st;
	kpack_error_t err = merge_plan_write(plan, dir, slash + 1, &w, why);

	if (!err)
		err = keep_attributes(a, w, slash + 1, why);
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

static kpack_error_t remove_archive(struct prune_archive *a, bool dry,
				    struct kpackx_error *why)
{
	if (!dry && below_unlink(a->path) < 0)
		return below_fail(why, "cannot remove");
	a->after = 0;
	return KPACK_SUCCESS;
}

kpack_error_t prune_rewrite(struct prune_archive *a, bool dry, struct kpackx_error *why)
{
	const struct kpack_archive *old = a->archive->archive;
	const struct merge_source source = {.archive = old, .checked = true};
	struct kp_span family = kp_archive_family(old), group = kp_archive_group(old);
	struct merge_options options = {.takes = takes_entry, .takes_arg = a};
	struct merge_plan *plan = NULL;
	struct merge_stats stats;
	char *name, *of;
	kpack_error_t err;

	if (a->n_entries[PRUNE_STAYS] == 0)
		return remove_archive(a, dry, why);
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
			err = write_archive(a, plan, why);
	}
	merge_plan_free(plan);
	free(name);
	free(of);
	return err;
}
