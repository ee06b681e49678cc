/* SPDX-License-Identifier: MIT */
/*
 * The file of an archive may be written to at any time.  Size and time tell, and where
 * only the ctime is new, as after a rename, the table of contents is read again and
 * compared.
 */
#include <stdlib.h>
#include <unistd.h>
#include "origin.h"

bool origin_intact(struct origin *o)
{
	const struct stat *was = kp_archive_stat(o->archive);
	struct stat now;
	int64_t ctime;

	if (atomic_load(&o->changed))
		return false;
	/* its file system does not answer: nobody knows, and it may be back soon */
	if (fstat(kp_archive_fd(o->archive), &now))
		return false;
	if (was->st_size != now.st_size || was->st_mtim.tv_sec != now.st_mtim.tv_sec ||
	    was->st_mtim.tv_nsec != now.st_mtim.tv_nsec)
		goto changed;
	ctime = now.st_ctim.tv_sec * INT64_C(1000000000) + now.st_ctim.tv_nsec;
	if ((was->st_ctim.tv_sec == now.st_ctim.tv_sec &&
	     was->st_ctim.tv_nsec == now.st_ctim.tv_nsec) ||
	    atomic_load(&o->verified) == ctime)
		return true;
	/* The file was renamed or unlinked, or a program wrote to it and restored the
	 * mtime. */
	if (!kp_archive_same_toc(o->archive))
		goto changed;
	atomic_store(&o->verified, ctime);
	return true;
changed:
	atomic_store(&o->changed, true);
	return false;
}

kpack_error_t origin_new(int fd, const char *path, struct origin **out,
			 struct kpackx_error *why)
{
	static atomic_uint serials;
	struct origin *o = calloc(1, sizeof(*o));
	kpack_error_t err;

	if (!o) {
		close(fd);
		return kp_fail_memory(why, sizeof(*o), "an archive");
	}
	o->refs = 1;
	o->serial = atomic_fetch_add(&serials, 1) + 1;
	err = kp_archive_open_fd(fd, path, &o->archive, why);
	if (!err && !origin_intact(o))
		err = kp_fail(why, KPACK_ERROR_IO_ERROR, "is being written to");
	if (err) {
		origin_unref(o);
		return err;
	}
	kp_archive_compact(o->archive);
	*out = o;
	return KPACK_SUCCESS;
}

struct origin *origin_ref(struct origin *o)
{
	if (o)
		atomic_fetch_add(&o->refs, 1);
	return o;
}

void origin_unref(struct origin *o)
{
	if (!o || atomic_fetch_sub(&o->refs, 1) > 1)
		return;
	kp_archive_close(o->archive);
	free(o);
}

/* --- bundles -------------------------------------------------------------------------- */

struct bundle *bundle_new(const struct kp_view_bundle *from)
{
	size_t parts = from->count * sizeof(struct bundle_part);
	struct bundle *b = malloc(sizeof(*b) + parts + from->header.size);
	uint8_t *header;

	if (!b)
		return NULL;
	*b = (struct bundle){.refs = 1, .size = from->size};
	header = (uint8_t *)(b->parts + from->count);
	memcpy(header, from->header.data, from->header.size);
	b->header = (struct kp_span){header, from->header.size};
	return b;
}

void bundle_add(struct bundle *b, struct origin_entry what, uint64_t offset)
{
	struct kp_entry_info info;

	kp_archive_entry(what.origin->archive, what.entry, &info);
	origin_ref(what.origin);
	b->parts[b->count++] = (struct bundle_part){what, offset, info.size};
}

void file_content_ref(const struct file_content *c)
{
	if (c->bundle)
		atomic_fetch_add(&c->bundle->refs, 1);
	else if (c->entry.origin)
		origin_ref(c->entry.origin);
}

void file_content_unref(const struct file_content *c)
{
	struct bundle *b = c->bundle;

	origin_unref(c->entry.origin);
	if (!b || atomic_fetch_sub(&b->refs, 1) > 1)
		return;
	for (uint32_t i = 0; i < b->count; i++)
		origin_unref(b->parts[i].what.origin);
	free(b);
}

static bool same_entry(struct origin_entry a, const struct kp_view *view, uint32_t file,
		       bool shared)
{
	size_t entry;
	struct kpack_archive *mine = a.origin->archive;
	struct kpack_archive *archive = kp_view_entry(view, file, &entry);

	return (mine == archive && a.entry == entry) ||
	       (kp_view_same_content(mine, a.entry, archive, entry) &&
		(!shared || kp_view_same_readers(mine, archive)));
}

bool file_content_same(const struct file_content *c, const struct kp_view *view,
		       uint32_t file, bool shared)
{
	struct kp_view_bundle b;

	if (!kp_view_bundle(view, file, &b))
		return !c->bundle && same_entry(c->entry, view, file, shared);
	if (!c->bundle || !kp_span_eq(c->bundle->header, b.header) ||
	    c->bundle->count != b.count)
		return false;
	for (uint32_t i = 0; i < b.count; i++)
		if (!same_entry(c->bundle->parts[i].what, view, b.parts[i].file, shared))
			return false;
	return true;
}
