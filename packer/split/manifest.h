/* SPDX-License-Identifier: MIT */
/*
 * The prefixes of a build artifact: directories of a tree that are each the root of an install
 * tree.  ARTIFACT_MANIFEST at the tree's root names them, one per line; blank lines and
 * spaces around a name do not count.
 */
#ifndef PACKER_SPLIT_MANIFEST_H
#define PACKER_SPLIT_MANIFEST_H

#include <stdio.h>
#include "core/base/errors.h"
#include "core/base/span.h"

struct prefix {
	char *path; /* relative to the tree's root; "" is the root itself */
	bool absent; /* the manifest names it and it is not there: a shard made nothing of it */
};

struct prefixes {
	struct prefix *items; /* in the manifest's order; without one, just the root */
	size_t count;
	size_t *sorted; /* their numbers by path, bytewise */
	bool manifest;  /* there is one */
};

/*
 * Parse a manifest.  INVALID_FORMAT names the line: no relative path inside the tree (one
 * with ".", "..", a leading slash, bytes that are no text), one that stands there twice, or
 * is inside another; no prefix at all; more than the limits of prefixes.c.  OUT_OF_MEMORY.
 */
kpack_error_t prefixes_parse(struct kp_span text, struct prefixes *out,
			     struct kpackx_error *why);

/*
 * The prefixes of the tree ROOT.  FILE_NOT_FOUND: no manifest, which is REQUIRED.
 * INVALID_FORMAT: as of prefixes_parse; or a prefix is no directory, or behind a symbolic
 * link.  IO_ERROR, OUT_OF_MEMORY.
 */
kpack_error_t prefixes_open(const char *root, bool required, struct prefixes *out,
			    struct kpackx_error *why);
void prefixes_close(struct prefixes *p); /* accepts a zeroed one */

/* Is PATH, relative to the root, one? */
bool prefixes_has(const struct prefixes *p, const char *path);

#endif
