/* SPDX-License-Identifier: MIT */
/*
 * Reads of bundles.  Each part is read as its entry, so that its bytes are decoded once
 * for the bundle, the entry's own file, and all readers.
 */
#ifndef FS_CONTENT_BUNDLE_READ_H
#define FS_CONTENT_BUNDLE_READ_H

#include "content.h"
#include "fs/tree/origin.h"

/*
 * As content_read_to, for a bundle: the answer has the bytes of all parts between OFF and
 * OFF + LEN, or the first error.  The caller may release its reference after the call.
 */
void content_read_bundle(struct content *c, const struct bundle *b, uint64_t off,
			 size_t len, content_answer *answer, void *token);

#endif
