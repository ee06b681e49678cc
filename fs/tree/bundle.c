/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "bundle.h"

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

struct bundle *bundle_ref(struct bundle *b)
{
	atomic_fetch_add(&b->refs, 1);
	return b;
}

void bundle_unref(struct bundle *b)
{
	if (!b || atomic_fetch_sub(&b->refs, 1) > 1)
		return;
	for (uint32_t i = 0; i < b->count; i++)
		origin_unref(b->parts[i].what.origin);
	free(b);
}

void file_content_ref(const struct file_content *c)
{
	if (c->bundle)
		bundle_ref(c->bundle);
	else if (c->entry.origin)
		origin_ref(c->entry.origin);
}

void file_content_unref(const struct file_content *c)
{
	bundle_unref(c->bundle);
	origin_unref(c->entry.origin);
}

uint64_t file_content_size(const struct file_content *c)
{
	struct kp_entry_info info;

	if (c->bundle)
		return c->bundle->size;
	kp_archive_entry(c->entry.origin->archive, c->entry.entry, &info);
	return info.size;
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
