/* SPDX-License-Identifier: MIT */
/*
 * The prefixes of a build artifact: the directories that are each the root of an install
 * tree.  The file ARTIFACT_MANIFEST at the artifact's root names them, one per line;
 * blank lines and spaces around a name are ignored.
 */
#ifndef PACKER_SPLIT_MANIFEST_H
#define PACKER_SPLIT_MANIFEST_H

#include <stdio.h>
#include "core/base/errors.h"
#include "core/base/span.h"

struct prefix {
	char *path;  /* relative to the tree's root; "" is the root itself */
	bool absent; /* missing from the tree: a shard built nothing for it */
};

struct prefixes {
	struct prefix *items; /* in the manifest's order; without one just the root */
	size_t count;
	size_t *sorted; /* indices into items, by path, bytewise */
	bool manifest;  /* the tree has a manifest */
};

/*
 * Parse a manifest.  INVALID_FORMAT, naming the line: not a relative path inside the tree
 * (it has ".", "..", a leading slash or bytes that are not text), or too many prefixes.
 * INVALID_FORMAT: a prefix is listed twice or is inside another one; the manifest names
 * no prefix.  The limits are in manifest.c.
 */
kpack_error_t prefixes_parse(struct kp_span text, struct prefixes *out,
			     struct kpackx_error *why);

/*
 * List the prefixes of the manifest PATH of a tree that other trees complete: it may name
 * none, and `sorted` is not set.  Errors of prefixes_parse for single lines, and IO_ERROR.
 */
kpack_error_t prefixes_list(const char *path, struct prefixes *out,
			    struct kpackx_error *why);

/*
 * Read the prefixes of the tree ROOT.  FILE_NOT_FOUND: a manifest is REQUIRED, but
 * missing.  INVALID_FORMAT: as prefixes_parse; or a prefix is not a directory, or is
 * reached through a symbolic link.  IO_ERROR.
 */
kpack_error_t prefixes_open(const char *root, bool required, struct prefixes *out,
			    struct kpackx_error *why);
void prefixes_close(struct prefixes *p); /* accepts a zeroed one */

/* True if PATH, relative to the root, is a prefix. */
bool prefixes_has(const struct prefixes *p, const char *path);

#endif
