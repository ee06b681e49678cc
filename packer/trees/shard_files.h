/* SPDX-License-Identifier: MIT */
/* The files of parts: record and check them. */
#ifndef PACKER_SHARD_FILES_H
#define PACKER_SHARD_FILES_H

#include "shard_record.h"

/* Fill ITEM, whose kind is set, with what the record says about DIR/PATH. */
kpack_error_t shard_files_look(const char *dir, const char *path, struct shard_item *item,
			       struct kpackx_error *why);

/*
 * Check that a file of the part DIR is still what ITEM says, and set ITEM's seen.
 * INVALID_FORMAT: it is not; WHY says what differs.
 */
kpack_error_t shard_files_check(const char *dir, struct shard_item *item,
				struct kpackx_error *why);

#endif
