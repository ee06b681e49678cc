/* SPDX-License-Identifier: MIT */
/*
 * The artifact that a list of files is in: its manifest lists prefixes, which are installed
 * into one root.  The archive that a binary of one prefix looks for may therefore be in
 * another one.
 */
#ifndef PACKER_SPLIT_ARTIFACT_ROOT_H
#define PACKER_SPLIT_ARTIFACT_ROOT_H

#include "manifest.h"
#include "packer/files/tree_list.h"

/* Zeroed: none. */
struct artifact_root {
	char *path;
	struct prefixes prefixes;
};

/*
 * Take the next item of a list: an artifact begins or ends.  Only the root of the list and
 * the directories in it are looked at; one whose manifest is invalid is no artifact.
 */
void artifact_root_item(struct artifact_root *a, const struct tree_item *item);

/*
 * The prefix of the file PATH, whose key is KEY: both must have it.  Sets REST to the path
 * inside it.  NULL: none.
 */
const struct prefix *artifact_root_prefix(const struct artifact_root *a, const char *path,
					  const char *key, const char **rest);

void artifact_root_fini(struct artifact_root *a);

#endif
