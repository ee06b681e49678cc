/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "core/base/hash.h"
#include "retired_inodes.h"

static struct retired_inode **bucket_of(const struct retired_inodes *r, uint64_t ino)
{
	return &r->buckets[kp_slot_hash(&ino, sizeof(ino), 0) & (r->size - 1)];
}

static struct retired_inode **place_of(const struct retired_inodes *r, uint64_t ino)
{
	struct retired_inode **at = bucket_of(r, ino);

	while (*at && (*at)->st.st_ino != ino)
		at = &(*at)->next;
	return at;
}

struct retired_inode *retired_inodes_find(const struct retired_inodes *r, uint64_t ino)
{
	return r->count ? *place_of(r, ino) : NULL;
}

static bool grow_table(struct retired_inodes *r)
{
	struct retired_inodes old = *r;

	if (r->count < r->size)
		return true;
	r->size = old.size ? 2 * old.size : 64;
	r->buckets = calloc(r->size, sizeof(*r->buckets));
	if (!r->buckets) {
		*r = old;
		return false;
	}
	for (size_t i = 0; i < old.size; i++) {
		struct retired_inode *next;

		for (struct retired_inode *n = old.buckets[i]; n; n = next) {
			struct retired_inode **at = bucket_of(r, n->st.st_ino);

			next = n->next;
			n->next = *at;
			*at = n;
		}
	}
	free(old.buckets);
	return true;
}

bool retired_inodes_add(struct retired_inodes *r, const struct retired_inode *inode)
{
	struct retired_inode *n = malloc(sizeof(*n)), **at;

	if (!n || !grow_table(r)) {
		free(n);
		return false;
	}
	*n = *inode;
	at = bucket_of(r, n->st.st_ino);
	n->next = *at;
	*at = n;
	r->count++;
	file_content_ref(&n->file);
	if (n->file.entry.origin)
		r->archives += n->file.entry.origin->retired++ == 0;
	for (uint32_t i = 0; n->file.bundle && i < n->file.bundle->count; i++)
		r->archives += n->file.bundle->parts[i].what.origin->retired++ == 0;
	return true;
}

/* An inode of O was removed. */
static void release_origin(struct retired_inodes *r, struct origin *o,
			   struct holdings *last)
{
	if (--o->retired)
		return;
	r->archives--;
	holdings_add(last, origin_ref(o));
}

void retired_inodes_remove(struct retired_inodes *r, uint64_t ino, struct holdings *last)
{
	struct retired_inode **at = place_of(r, ino), *n = *at;

	*at = n->next;
	r->count--;
	if (n->file.entry.origin)
		release_origin(r, n->file.entry.origin, last);
	for (uint32_t i = 0; n->file.bundle && i < n->file.bundle->count; i++)
		release_origin(r, n->file.bundle->parts[i].what.origin, last);
	file_content_unref(&n->file);
	free(n);
}

void retired_inodes_fini(struct retired_inodes *r)
{
	for (size_t i = 0; i < r->size; i++) {
		struct retired_inode *next;

		for (struct retired_inode *n = r->buckets[i]; n; n = next) {
			next = n->next;
			file_content_unref(&n->file);
			free(n);
		}
	}
	free(r->buckets);
	*r = (struct retired_inodes){0};
}
