/* SPDX-License-Identifier: MIT */
/* From the generic tree to those of architectures: renamed, not copied. */
#ifndef PACKER_SPLIT_MOVE_H
#define PACKER_SPLIT_MOVE_H

#include "split.h"

/*
 * Move what the partition of I says, with the directories it stands in; one that is empty now,
 * and was not, is gone.  Hard links between parts become files of their own: a part is
 * installed alone.  What went wrong names its file.
 */
kpack_error_t split_move(const struct split *s, const struct split_prefix *i,
			 struct kpackx_error *why);

/* When all is moved: the attributes of directories, and the manifests. */
kpack_error_t split_finish(const struct split *s, struct kpackx_error *why);

/* Has the part any file or archive of the prefix? */
bool split_contributes(const struct split_prefix *i, const char *part);

#endif
