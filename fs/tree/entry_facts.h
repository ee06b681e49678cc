/* SPDX-License-Identifier: MIT */
/*
 * What an archive says of an entry, under the names that .kpackfs/entries.jsonl and the
 * extended attributes have for it: archive, key, arch, type, ordinal, size, compressed_size,
 * scheme, chunk, xxh3, metadata.
 */
#ifndef FS_TREE_ENTRY_FACTS_H
#define FS_TREE_ENTRY_FACTS_H

#include "core/archive/archive.h"
#include "core/base/json.h"

/* Names by position; NULL after the last. */
const char *facts_name(size_t position);

/*
 * Add all facts of ENTRY to J as members of an object, null where there is none.  Metadata
 * that has no JSON of bounded size is null.
 */
void facts_put(struct kp_json *j, const struct kpack_archive *a, size_t entry);

/*
 * The fact at POSITION as text, which the caller frees: numbers in decimal, metadata as JSON.
 * NULL: the entry has none, or no memory.
 */
char *facts_text(const struct kpack_archive *a, size_t entry, size_t position);

#endif
