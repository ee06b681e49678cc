/* SPDX-License-Identifier: MIT */
/* The files of parts: record and check them, and copy them to the joined tree. */
#ifndef PACKER_SHARD_FILES_H
#define PACKER_SHARD_FILES_H

#include "record.h"

/* Fill ITEM, whose kind is set, with what the record says about DIR/PATH. */
kpack_error_t shard_files_look(const char *dir, const char *path, struct shard_item *item,
			       struct kpackx_error *why);

/*
 * Check that a file of the part DIR is still what ITEM says, and set ITEM's seen.
 * INVALID_FORMAT: it is not; WHY says what differs.
 */
kpack_error_t shard_files_check(const char *dir, struct shard_item *item,
				struct kpackx_error *why);

/*
 * Copy ITEM of the part DIR, which was checked, to OUT.  A directory is made, if missing, and can be filled.
 */
kpack_error_t shard_files_copy(const char *dir, const struct shard_item *item,
			       const char *out, struct kpackx_error *why);

/* Give a directory in OUT its attributes, after everything in it is written. */
kpack_error_t shard_files_finish(const char *dir, const struct shard_item *item,
				 const char *out, struct kpackx_error *why);

#endif
