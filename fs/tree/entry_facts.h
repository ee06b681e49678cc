/* SPDX-License-Identifier: MIT */
/*
 * The facts that an archive states about an entry, by their names in
 * .kpackfs/entries.jsonl and in the extended attributes: archive, key, arch, type,
 * ordinal, size, compressed_size, scheme, chunk, xxh3, metadata.
 */
#ifndef FS_TREE_ENTRY_FACTS_H
#define FS_TREE_ENTRY_FACTS_H

#include "bundle.h"
#include "core/base/json.h"

/* The name of the fact at POSITION; NULL after the last. */
const char *facts_name(size_t position);

/*
 * Add all facts of ENTRY to J as members of an object; a fact that the entry does not
 * have is null.  Metadata whose JSON would be too large is null, too.
 */
void facts_put(struct kp_json *j, const struct kpack_archive *a, size_t entry);

/*
 * As facts_put, for a bundle, which has a key, the type hipfb and a size.  A member
 * "parts" lists the archive, arch, offset and size of each part.
 */
void facts_put_bundle(struct kp_json *j, const struct bundle *b);

/*
 * The fact at POSITION as text, which the caller frees: numbers in decimal, metadata as
 * JSON.  NULL: the entry does not have this fact, or no memory.
 */
char *facts_text(const struct kpack_archive *a, size_t entry, size_t position);
char *facts_bundle_text(const struct bundle *b, size_t position);

#endif
