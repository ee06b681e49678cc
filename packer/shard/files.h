/* SPDX-License-Identifier: MIT */
/* The files of parts: what is recorded of them, and the tree that they make together. */
#ifndef PACKER_SHARD_FILES_H
#define PACKER_SHARD_FILES_H

#include "record.h"

/* What is known of DIR/PATH, of the kind that ITEM has, for its record. */
kpack_error_t shard_files_look(const char *dir, const char *path, struct shard_item *item,
			       struct kpackx_error *why);

/* Is it still what ITEM says?  INVALID_FORMAT: no; the text says what differs. */
kpack_error_t shard_files_check(const char *dir, const struct shard_item *item,
				struct kpackx_error *why);

/* Make ITEM of the part DIR in OUT too.  A directory: that it is there, and can be filled. */
kpack_error_t shard_files_copy(const char *dir, const struct shard_item *item,
			       const char *out, struct kpackx_error *why);

/* A directory has all that it shall have: give it its attributes. */
kpack_error_t shard_files_finish(const char *dir, const struct shard_item *item,
				 const char *out, struct kpackx_error *why);

#endif
