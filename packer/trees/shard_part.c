/* SPDX-License-Identifier: MIT */
#include "shard_part.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/base/bounds.h"
#include "core/base/scheme.h"
#include "shard_files.h"
#include "packer/cli/xalloc.h"
#include "packer/files/below.h"
#include "packer/archives/volume.h"
#include "core/archive/naming.h"

/* --- the record ---------------------------------------------------------------------- */

static kpack_error_t fail_no_record(const struct shard_part *p, struct kpackx_error *why)
{
	if (below_access(p->own, F_OK) < 0)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			       "is no part: it has no " SHARD_DIR);
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "its shard was not finished: run it again");
}

static kpack_error_t read_record(struct shard_part *p, const char *path, size_t *size,
				 struct kpackx_error *why)
{
	struct kp_source record;
	kpack_error_t err;
	struct stat st;
	int fd;

	if (below_access(path, F_OK) < 0 && errno == ENOENT)
		return fail_no_record(p, why);
	KP_TRY(below_file_open_nofollow(path, &fd, &st, why));
	*size = (size_t)st.st_size;
	p->owner = st.st_uid;
	record = kp_source_fd(fd, 0, (uint64_t)st.st_size);
	err = kp_source_load(&record, KP_TOC_SIZE_MAX, "a record", &p->bytes, why);
	close(fd);
	return err;
}

static kpack_error_t open_record(struct shard_part *p, struct kpackx_error *why)
{
	kpack_error_t err;
	size_t size = 0;
	char *path;

	p->own = xasprintf("%s/" SHARD_DIR, p->dir);
	path = xasprintf("%s/" SHARD_RECORD, p->own);
	err = read_record(p, path, &size, why);
	if (!err) {
		err = shard_record_parse((struct kp_span){p->bytes, size}, &p->record,
					 why);
		if (err)
			kp_fail_prefix(why, err, SHARD_DIR "/" SHARD_RECORD);
	}
	free(path);
	return err;
}

kpack_error_t shard_part_open(const char *dir, struct shard_part *out,
			      struct kpackx_error *why)
{
	kpack_error_t err;

	*out = (struct shard_part){.dir = dir};
	err = open_record(out, why);
	return err ? kp_fail_prefix(why, err, "%s", dir) : err;
}

void shard_part_close(struct shard_part *part)
{
	for (size_t i = 0; i < part->n_archives; i++) {
		kp_archive_close(part->archives[i].archive);
		free(part->archives[i].file);
		free(part->archives[i].entries);
	}
	shard_record_fini(&part->record);
	free(part->archives);
	free(part->own);
	free(part->bytes);
	*part = (struct shard_part){0};
}

/* --- its files ----------------------------------------------------------------------- */

/* Whether the directory of PATH is among the N DIRS. */
static bool has_parent(const char *path, const char **dirs, size_t n)
{
	const char *slash = strrchr(path, '/');
	char parent[KP_NAME_MAX + 1], *p = parent;

	if (!slash)
		return true;
	memcpy(parent, path, (size_t)(slash - path));
	parent[slash - path] = 0;
	return bsearch(&p, dirs, n, sizeof(*dirs), kp_order_texts) != NULL;
}

/*
 * Check that the record has every parent directory: all of them are made, so that nothing
 * is written through a link.
 */
static kpack_error_t check_parents(const struct shard_part *part,
				   struct kpackx_error *why)
{
	const struct shard_record *r = &part->record;
	const char **dirs = xcalloc(r->n_items, sizeof(*dirs));
	kpack_error_t err = KPACK_SUCCESS;
	size_t n = 0;

	for (size_t i = 0; i < r->n_items; i++)
		if (r->items[i].kind == SHARD_DIRECTORY)
			dirs[n++] = r->items[i].path;
	qsort(dirs, n, sizeof(*dirs), kp_order_texts);
	for (size_t i = 0; i < r->n_items && !err; i++)
		if (r->items[i].kind != SHARD_OWN &&
		    !has_parent(r->items[i].path, dirs, n))
			err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
				      "%s: its directory is not in the record",
				      r->items[i].path);
	free(dirs);
	return err;
}

/*
 * Check the owner of an item.  With a forged record another user could make root give
 * further names to files of third users, with their owners and set-user-ID bits, or take
 * archives for those of another run.
 */
static kpack_error_t check_owner(const struct shard_part *part,
				 const struct shard_item *item, struct kpackx_error *why)
{
	if (geteuid() != 0 || part->owner == 0 || item->kind == SHARD_DIRECTORY ||
	    item->kind == SHARD_ABSENT || item->seen.uid == part->owner)
		return KPACK_SUCCESS;
	return kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
		       "%s/" SHARD_RECORD
		       ": belongs to user %u, who could have forged it, but %s to user "
		       "%u: check them, and give them the same owner",
		       part->own, (unsigned)part->owner, item->path,
		       (unsigned)item->seen.uid);
}

kpack_error_t shard_part_check(struct shard_part *part, struct kpackx_error *why)
{
	struct shard_record *r = &part->record;
	kpack_error_t err = check_parents(part, why);

	if (err)
		return kp_fail_prefix(why, err, "%s", part->dir);
	for (size_t i = 0; i < r->n_items; i++) {
		KP_TRY(shard_files_check(r->items[i].kind == SHARD_OWN ? part->own
								       : part->dir,
					 &r->items[i], why));
		KP_TRY(check_owner(part, &r->items[i], why));
	}
	return KPACK_SUCCESS;
}

/* --- its archives -------------------------------------------------------------------- */

static kpack_error_t list_ordinals(struct shard_archive *a, struct kpackx_error *why)
{
	uint32_t n = kp_archive_ordinal_count(a->archive);
	struct kp_entry_info info;

	a->entries = malloc(((size_t)n + 1) * sizeof(*a->entries));
	if (!a->entries)
		return kp_fail_memory(why, n, "ordinals");
	memset(a->entries, 0xff, n * sizeof(*a->entries));
	for (size_t i = 0; i < kp_archive_entry_count(a->archive); i++) {
		kp_archive_entry(a->archive, i, &info);
		if (info.ordinal < n)
			a->entries[info.ordinal] = (uint32_t)i;
	}
	return KPACK_SUCCESS;
}

static kpack_error_t open_archive(struct shard_part *part, const char *file,
				  struct shard_archive **out, struct kpackx_error *why)
{
	char *path = xasprintf("%s/%s", part->own, file);
	kpack_error_t err;

	part->archives = xrealloc(part->archives, (part->n_archives + 1) * sizeof(**out));
	*out = &part->archives[part->n_archives++];
	**out = (struct shard_archive){.file = xstrdup(file)};
	err = below_archive_open(path, &(*out)->archive, why);
	if (!err)
		err = list_ordinals(*out, why);
	if (err)
		kp_fail_prefix(why, err, "%s", path);
	free(path);
	return err;
}

static char *archive_name(const struct shard_part *part, const char *place,
			  unsigned volume)
{
	char *stem = families_stem(&part->record.families, place);
	char *file = kp_archive_file_name(part->record.group, volume, stem);

	if (!file)
		xalloc_fail(0);
	free(stem);
	return file;
}

static kpack_error_t find_archive(struct shard_part *part, const char *place,
				  unsigned volume, struct shard_archive **out,
				  struct kpackx_error *why)
{
	char *file = archive_name(part, place, volume);
	kpack_error_t err;

	for (size_t i = 0; i < part->n_archives; i++)
		if (strcmp(part->archives[i].file, file) == 0) {
			*out = &part->archives[i];
			free(file);
			return KPACK_SUCCESS;
		}
	if (strchr(file, '/'))
		err = kp_fail(why, KPACK_ERROR_INVALID_FORMAT,
			      "%s: %s gives no file name", part->dir, place);
	else
		err = open_archive(part, file, out, why);
	free(file);
	return err;
}

static kpack_error_t reserve_frame(struct shard_frame *frame, size_t size,
				   struct kpackx_error *why)
{
	if (size > frame->cap || !frame->bytes) {
		free(frame->bytes);
		frame->bytes = malloc(size + 1);
		frame->cap = frame->bytes ? size : 0;
		if (!frame->bytes)
			return kp_fail_memory(why, size, "a frame");
	}
	return KPACK_SUCCESS;
}

static kpack_error_t read_stored(const struct kpack_archive *a, uint32_t entry,
				 struct shard_frame *frame, struct kp_span *out,
				 struct kpackx_error *why)
{
	struct kp_source stored;

	KP_TRY(kp_archive_source(a, entry, &stored, why));
	KP_TRY(reserve_frame(frame, (size_t)stored.size, why));
	*out = (struct kp_span){frame->bytes, (size_t)stored.size};
	return kp_source_read(&stored, 0, frame->bytes, out->size, why);
}

static kpack_error_t read_decoded(const struct kpack_archive *a, uint32_t entry,
				  struct shard_frame *frame, struct kp_span *out,
				  struct kpackx_error *why)
{
	struct kp_entry_info info;

	KP_TRY(kp_archive_check_size(a, entry, why));
	kp_archive_entry(a, entry, &info);
	KP_TRY(reserve_frame(frame, (size_t)info.size, why));
	*out = (struct kp_span){frame->bytes, (size_t)info.size};
	return kp_archive_read(a, entry, frame->bytes, why);
}

kpack_error_t part_read(struct shard_part *part, const char *place, unsigned volume,
			uint32_t ordinal, struct shard_frame *frame, struct kp_span *out,
			struct kpackx_error *why)
{
	struct shard_archive *a = NULL;
	kpack_error_t err;

	KP_TRY(find_archive(part, place, volume, &a, why));
	if (!a->entries || ordinal >= kp_archive_ordinal_count(a->archive) ||
	    a->entries[ordinal] == UINT32_MAX)
		return kp_fail(why, KPACK_ERROR_INVALID_FORMAT, "%s/%s: has no object %u",
			       part->own, a->file, ordinal);
	err = (part->record.scheme == KP_COMPRESSION_ZSTD_SHARED
		       ? read_decoded
		       : read_stored)(a->archive, a->entries[ordinal], frame, out, why);
	return err ? kp_fail_prefix(why, err, "%s/%s", part->own, a->file) : err;
}
