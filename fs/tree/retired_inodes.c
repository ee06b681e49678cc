/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "retired_inodes.h"

static struct retired_inode **bucket_of(const struct retired_inodes *r, uint64_t ino)
{
	/* Most numbers are hashes; numbers that follow each other come from
	 * collisions. */
	return &r->buckets[(ino ^ ino >> 32) & (r->size - 1)];
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
	if (n->file.origin) {
		origin_ref(n->file.origin);
		r->archives += n->file.origin->retired++ == 0;
	}
	return true;
}

struct origin *retired_inodes_remove(struct retired_inodes *r, uint64_t ino)
{
	struct retired_inode **at = place_of(r, ino), *n = *at;
	struct origin *o = n->file.origin;
	bool last = o && --o->retired == 0;

	*at = n->next;
	free(n);
	r->count--;
	r->archives -= last;
	if (last)
		return o;
	origin_unref(o);
	return NULL;
}

void retired_inodes_fini(struct retired_inodes *r)
{
	for (size_t i = 0; i < r->size; i++) {
		struct retired_inode *next;

		for (struct retired_inode *n = r->buckets[i]; n; n = next) {
			next = n->next;
			origin_unref(n->file.origin);
			free(n);
		}
	}
	free(r->buckets);
	*r = (struct retired_inodes){0};
}
