/* SPDX-License-Identifier: MIT */
/*
 * The host part of a binary that a shard converted.  The marker of the binary names a
 * volume, which is known for sure only when all shards are joined; then the binary is
 * converted again, from its host part, to the very bytes that one run would have written.
 */
#ifndef PACKER_SHARD_HOST_H
#define PACKER_SHARD_HOST_H

#include "packer/scan/input.h"

/* Copy the file of IN to PATH; without CODE, with a hole instead of its device code. */
kpack_error_t shard_host_save(struct input *in, bool code, const char *path,
			      struct kpackx_error *why);

/*
 * Convert HOST, which shard_host_save wrote, to TO.  FROM is the same binary, converted
 * with OLD_VOLUME of GROUP in its marker; TO gets VOLUME there, and otherwise FROM's
 * attributes and options.
 */
kpack_error_t shard_host_convert(const char *host, const char *from, const char *to,
				 const char *group, unsigned old_volume, unsigned volume,
				 struct kpackx_error *why);

#endif
