/* SPDX-License-Identifier: MIT */
/*
 * One archive per architecture for all prefixes of an artifact, in the first of them: see
 * split.h.
 */
#ifndef PACKER_SPLIT_JOINED_H
#define PACKER_SPLIT_JOINED_H

#include "split.h"

/*
 * Let the keys of I's device code begin with the prefix.  Call it after the scan.  A path
 * that cannot be a key is reported, and is a fault of the scan.
 */
void split_prefix_keys(struct split_prefix *i);

/*
 * The prefix that holds the archive NAME of PART, which I's run wrote: I itself, or, if
 * archives are joined, the first prefix by path whose run wrote one of that name.  SEVERAL
 * (or NULL) is set to whether there are archives to join.
 */
const struct split_prefix *split_archive_home(const struct split *s,
					      const struct split_prefix *i,
					      const char *part, const char *name,
					      bool *several);

/*
 * Write the archive NAME of PART, of all prefixes that wrote one, into TREE, below the
 * prefix HOME whose directories exist there; remove the ones in the generic tree.
 * INVALID_ARGUMENT: files of databases clash, or one archive cannot hold all.
 */
kpack_error_t split_join_archives(const struct split *s, const struct split_prefix *home,
				  const struct split_tree *tree, const char *part,
				  const char *name, struct kpackx_error *why);

#endif
