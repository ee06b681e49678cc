/* SPDX-License-Identifier: MIT */
/*
 * A bundle: a file that is put together from entries of archives when it is read.  What it
 * has of its own is the header; between the parts are zeros.
 *
 * It holds references to the archives, so that it can be read after its edition has gone.
 * Immutable when all parts have been added; releasing the last reference frees it.
 */
#ifndef FS_TREE_BUNDLE_H
#define FS_TREE_BUNDLE_H

#include <stdatomic.h>
#include "core/view/view.h"
#include "origin.h"

struct bundle_part {
	struct origin_entry what; /* the whole of it; with a reference */
	uint64_t offset, size;
};

struct bundle {
	atomic_uint refs;
	uint64_t size;
	struct kp_span header;
	uint32_t count;
	struct bundle_part parts[]; /* by offset */
};

/* A bundle with the header and size of FROM, and room for its parts.  NULL: no memory. */
struct bundle *bundle_new(const struct kp_view_bundle *from);
/* Add a part behind those that were added; takes a reference of its own. */
void bundle_add(struct bundle *b, struct origin_entry what, uint64_t offset);

struct bundle *bundle_ref(struct bundle *b);
void bundle_unref(struct bundle *b); /* NULL is fine */

/* The content of a file of the mount: an entry; or BUNDLE, if that is not NULL. */
struct file_content {
	struct origin_entry entry;
	struct bundle *bundle;
};

void file_content_ref(const struct file_content *c);
void file_content_unref(const struct file_content *c); /* of zeros is fine */

uint64_t file_content_size(const struct file_content *c);

/*
 * Whether C and FILE of VIEW have the same bytes, as far as their archives say; if SHARED,
 * and the same readers.
 */
bool file_content_same(const struct file_content *c, const struct kp_view *view,
		       uint32_t file, bool shared);

#endif
